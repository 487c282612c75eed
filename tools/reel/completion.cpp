#include <memory>
#include <string>

#include <fmt/format.h>

#include "verb.h"

namespace {

// The options of a verb: "--json --statistics".
std::string options_of(const Verb& verb) {
  CLI::App command;
  static_cast<void>(verb.add(command));
  std::string names = "--help";
  for (const CLI::Option* option : command.get_options([](const CLI::Option* one) { return one->nonpositional(); }))
    for (const std::string& name : option->get_lnames())
      if (name != "help") names += " --" + name;
  return names;
}

constexpr const char* bash_script = R"(# Completion of reel for bash.
_reel() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} options=
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{0} --help --version" -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{1}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _reel reel
)";

constexpr const char* zsh_script = R"(#compdef reel
_reel() {{
  local options
  if ((CURRENT == 2)); then
    compadd -- {0} --help --version
    return
  fi
  case $words[2] in
{1}  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- ${{=options}}
  else
    _files
  fi
}}
_reel "$@"
)";

}  // namespace

std::function<int()> add_completion(CLI::App& command) {
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
  return [shell] {
    std::string names, cases;
    for (const Verb& verb : verbs()) {
      names += (names.empty() ? "" : " ") + std::string(verb.name);
      cases += fmt::format("    {}) options=\"{}\" ;;\n", verb.name, options_of(verb));
    }
    fmt::print(fmt::runtime(*shell == "bash" ? bash_script : zsh_script), names, cases);
    return 0;
  };
}
