// For the checker of the scripts, tools/lint: what run.js takes from the data of a recording.
interface Run {
  [column: string]: any;
}
