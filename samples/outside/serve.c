/* Answers requests with a model, in C. It loads a plugin (classifier.cpp is one) and its weights:
 *
 *   serve PLUGIN WEIGHTS                        answers the lines of the standard input, one by one
 *   serve PLUGIN WEIGHTS --port N               listens at 127.0.0.1:N; 0 is any free port, which is printed
 *   serve PLUGIN WEIGHTS --socket PATH          listens at a Unix socket
 *     --max-batch N    the most requests that one call of the model answers (default 32)
 *     --max-wait MS    how long a request waits for others, in milliseconds (default 2)
 *     --idle S         how long a connection may take to send a whole line, in seconds (default 60)
 *
 * Protocol: a request is one line of numbers with blanks between them, a row of the model's input, which is f32 of shape (rows,
 * numbers). Its answer is one line: the numbers of the row of the first result, or "error: " and a sentence. A connection's
 * requests are answered in their order; a line of more than 65,535 bytes, and one that does not come in time, is answered by an error and
 * ends the connection; a client that does not take an answer within 5 seconds is left.
 *
 * Requests of all connections wait in one queue. A thread takes those of equal length, as many as a batch holds or have come
 * within the time that the first one may wait, calls the model once and hands each its row. If the call fails, each of them is
 * run alone, so that a bad request does not fail the others. A row's numbers may differ in their last places with the number of
 * rows that it is batched with. SIGTERM and SIGINT end the server within 2 seconds: what was read
 * is answered as far as clients take the answers within one. */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <reel/c.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
  MOST_LINE = 65536,
  MOST_NUMBERS = MOST_LINE / 2,
  MOST_CONNECTIONS = 256,
  MOST_BATCH = 4096,
  MOST_RESULTS = 8,
  SEND_MS = 5000,
  ANSWERS_AT_STOP_MS = 1000, /* what clients have to take the last answers */
  ENDS_AT_STOP_MS = 500      /* what connections have to end after that */
};

static const char too_long[] = "the line is longer than 65,535 bytes";

struct Request {
  float* values;
  size_t count;
  struct timespec arrived;
  char* answer;
  bool answered; /* under the server's lock: the request belongs to the thread of batches before */
  struct Request* next;
};

struct Server {
  reel_model* model;
  long max_batch, max_wait, idle_seconds;
  pthread_mutex_t lock;
  pthread_cond_t arrival, answered, connection_ended;
  struct Request *first, **end;
  bool stopping, finished; /* no line is read any more; no request can come any more */
  long requests, batches, connections;
};

struct Connection {
  struct Server* server;
  int socket;
  pthread_t thread;
  bool used, ended;
};

static struct timespec in_milliseconds(struct timespec moment, long milliseconds) {
  moment.tv_sec += milliseconds / 1000;
  moment.tv_nsec += milliseconds % 1000 * 1000000;
  if (moment.tv_nsec >= 1000000000) {
    moment.tv_nsec -= 1000000000;
    ++moment.tv_sec;
  }
  return moment;
}

/* The clock of the day may be set while a wait depends on it. */
static struct timespec now(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return moment;
}

/* True once a socket can be read or written, or is shut down; false at that moment. */
static bool is_ready(int socket, short events, struct timespec until) {
  struct pollfd waited = {.fd = socket, .events = events};
  for (;;) {
    struct timespec from = now();
    long left = (long)(until.tv_sec - from.tv_sec) * 1000 + (until.tv_nsec - from.tv_nsec) / 1000000;
    int ready = poll(&waited, 1, left > 0 ? (int)left : 0);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (ready == 0 && left <= 0) return false;
  }
}

static char* copy_text(const char* text) {
  char* copy = strdup(text);
  if (!copy) {
    fputs("serve: there is not enough memory\n", stderr);
    exit(1);
  }
  return copy;
}

/* An answer that is one line. */
static char* error_answer(const char* sentence) {
  char text[MOST_LINE];
  snprintf(text, sizeof text, "error: %s", sentence);
  for (char* c = text; *c; ++c)
    if (*c == '\n') *c = ' ';
  return copy_text(text);
}

static char* row_answer(const float* values, size_t count) {
  char *text = malloc(count * 20 + 1), *end = text;
  if (!text) return error_answer("there is not enough memory");
  *end = '\0';
  for (size_t i = 0; i < count; ++i) end += sprintf(end, "%s%.9g", i > 0 ? " " : "", (double)values[i]);
  return text;
}

/* Gives each request the numbers of its row of a result. Returns a sentence if it has no such rows, else NULL. */
static const char* hand_out_rows(const reel_tensor* result, struct Request** requests, size_t rows) {
  reel_tensor* numbers = NULL;
  if (reel_tensor_rank(result) == 0 || reel_tensor_size(result, 0) != (int64_t)rows)
    return "the first result of the model has not one row for each row of its input";
  if (reel_tensor_convert(result, REEL_F32, &numbers) != REEL_OK) return reel_last_error();
  size_t each = (size_t)reel_tensor_numel(numbers) / rows;
  const float* values = reel_tensor_data(numbers);
  for (size_t i = 0; i < rows; ++i) requests[i]->answer = row_answer(values + i * each, each);
  reel_tensor_free(numbers);
  return NULL;
}

/* Calls the model with rows of equal length and gives each request its answer. Returns a sentence if that fails, else NULL. */
static const char* answer_rows(const reel_model* model, struct Request** requests, size_t rows, float* values) {
  size_t count = requests[0]->count, result_count = 0;
  for (size_t i = 0; i < rows; ++i) memcpy(values + i * count, requests[i]->values, count * sizeof *values);
  int64_t sizes[2] = {(int64_t)rows, (int64_t)count};
  reel_tensor *input = NULL, *results[MOST_RESULTS];
  const char* failure = NULL;
  if (reel_tensor_wrap(REEL_F32, 2, sizes, values, rows * count * sizeof *values, NULL, NULL, &input) != REEL_OK)
    return reel_last_error();
  const reel_tensor* inputs[1] = {input};
  if (reel_model_run(model, inputs, 1, results, MOST_RESULTS, &result_count) != REEL_OK) {
    failure = reel_last_error();
    result_count = 0;
  } else {
    failure = result_count > 0 ? hand_out_rows(results[0], requests, rows) : "the model has no result";
  }
  for (size_t i = 0; i < result_count; ++i) reel_tensor_free(results[i]);
  reel_tensor_free(input);
  return failure;
}

static void answer_batch(const reel_model* model, struct Request** requests, size_t rows) {
  float* values = malloc(rows * requests[0]->count * sizeof *values);
  const char* failure = values ? answer_rows(model, requests, rows, values) : "there is not enough memory";
  if (failure && rows == 1) requests[0]->answer = error_answer(failure);
  for (size_t i = 0; failure && rows > 1 && i < rows; ++i) answer_batch(model, requests + i, 1);
  free(values);
}

/* Takes at most max_batch requests that are as long as the first one out of the queue. */
static size_t take_batch(struct Server* server, struct Request** batch) {
  size_t count = server->first->count, rows = 0;
  struct Request** link = &server->first;
  while (*link && rows < (size_t)server->max_batch)
    if ((*link)->count == count) {
      batch[rows++] = *link;
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  for (server->end = &server->first; *server->end;) server->end = &(*server->end)->next;
  return rows;
}

static bool batch_is_full(const struct Server* server) {
  long rows = 0;
  for (const struct Request* request = server->first; request; request = request->next)
    rows += request->count == server->first->count;
  return rows >= server->max_batch;
}

static void* run_batches(void* argument) {
  struct Server* server = argument;
  struct Request* batch[MOST_BATCH];
  pthread_mutex_lock(&server->lock);
  for (;;) {
    while (!server->first && !server->finished) pthread_cond_wait(&server->arrival, &server->lock);
    if (!server->first) break;
    struct timespec until = in_milliseconds(server->first->arrived, server->max_wait);
    while (!server->stopping && !batch_is_full(server))
      if (pthread_cond_timedwait(&server->arrival, &server->lock, &until) == ETIMEDOUT) break;
    size_t rows = take_batch(server, batch);
    pthread_mutex_unlock(&server->lock);
    answer_batch(server->model, batch, rows);
    pthread_mutex_lock(&server->lock);
    for (size_t i = 0; i < rows; ++i) batch[i]->answered = true;
    server->requests += (long)rows;
    ++server->batches;
    pthread_cond_broadcast(&server->answered);
  }
  pthread_mutex_unlock(&server->lock);
  return NULL;
}

/* Reads the numbers of a line of `length` bytes; returns an answer if there is something else in it, else NULL. */
static char* read_numbers(char* line, size_t length, struct Request* request) {
  request->count = 0;
  if (strlen(line) != length) return error_answer("there is a NUL in the line");
  for (char* next = line;;) {
    next += strspn(next, " \t\r");
    if (*next == '\0') break;
    char* end;
    request->values[request->count++] = strtof(next, &end);
    if (end == next || !strchr(" \t\r", *end)) {
      char sentence[128];
      next[strcspn(next, " \t\r")] = '\0';
      snprintf(sentence, sizeof sentence, "'%.60s' is no number", next);
      return error_answer(sentence);
    }
    next = end;
  }
  return request->count == 0 ? error_answer("a request is one line of numbers; this one is empty") : NULL;
}

/* The answer to a line, which waits in the queue for those of others. The caller frees it. */
static char* answer_line(struct Server* server, char* line, size_t length, float* values) {
  struct Request request = {.values = values};
  char* refusal = read_numbers(line, length, &request);
  if (refusal) return refusal;
  request.arrived = now();
  pthread_mutex_lock(&server->lock);
  *server->end = &request;
  server->end = &request.next;
  pthread_cond_signal(&server->arrival);
  while (!request.answered) pthread_cond_wait(&server->answered, &server->lock);
  pthread_mutex_unlock(&server->lock);
  return request.answer;
}

static bool send_line(int socket, char* answer) {
  bool sent = true;
  struct timespec until = in_milliseconds(now(), SEND_MS);
  size_t length = strlen(answer), done = 0;
  answer[length] = '\n'; /* in the place of the NUL, which is not sent */
  while (sent && done < length + 1) {
    ssize_t count = send(socket, answer + done, length + 1 - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0)
      done += (size_t)count;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      sent = is_ready(socket, POLLOUT, until);
    else
      sent = errno == EINTR;
  }
  free(answer);
  return sent;
}

static bool is_stopping(struct Server* server) {
  pthread_mutex_lock(&server->lock);
  bool stopping = server->stopping;
  pthread_mutex_unlock(&server->lock);
  return stopping;
}

/* Answers the lines of a connection until it ends. */
static void answer_lines(struct Server* server, int socket, char* buffer, float* values) {
  size_t filled = 0;
  struct timespec until = in_milliseconds(now(), server->idle_seconds * 1000);
  for (;;) {
    bool came = is_ready(socket, POLLIN, until);
    if (is_stopping(server)) return;
    if (!came) break;
    ssize_t count = recv(socket, buffer + filled, MOST_LINE - filled, MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return;
    filled += (size_t)count;
    char *start = buffer, *newline;
    while ((newline = memchr(start, '\n', filled - (size_t)(start - buffer)))) {
      *newline = '\0';
      if (!send_line(socket, answer_line(server, start, (size_t)(newline - start), values))) return;
      start = newline + 1;
      until = in_milliseconds(now(), server->idle_seconds * 1000);
    }
    filled -= (size_t)(start - buffer);
    memmove(buffer, start, filled);
    if (filled == MOST_LINE) break;
  }
  send_line(socket, error_answer(filled == MOST_LINE ? too_long : "no whole line has come in time"));
}

static void* run_connection(void* argument) {
  struct Connection* connection = argument;
  struct Server* server = connection->server;
  char* buffer = malloc(MOST_LINE);
  float* values = malloc(MOST_NUMBERS * sizeof *values);
  if (buffer && values) answer_lines(server, connection->socket, buffer, values);
  free(values);
  free(buffer);
  shutdown(connection->socket, SHUT_RDWR);
  pthread_mutex_lock(&server->lock);
  connection->ended = true;
  --server->connections;
  pthread_cond_signal(&server->connection_ended);
  pthread_mutex_unlock(&server->lock);
  return NULL;
}

static void join_connection(struct Connection* connection) {
  pthread_join(connection->thread, NULL);
  close(connection->socket);
  connection->used = false;
}

/* A place for a new connection, after those that have ended; NULL if all are in use. */
static struct Connection* free_place(struct Server* server, struct Connection* connections) {
  struct Connection* found = NULL;
  for (struct Connection* place = connections; place < connections + MOST_CONNECTIONS; ++place) {
    pthread_mutex_lock(&server->lock);
    bool ended = place->used && place->ended;
    pthread_mutex_unlock(&server->lock);
    if (ended) join_connection(place);
    if (!place->used) found = place;
  }
  return found;
}

static void start_connection(struct Server* server, struct Connection* connections, int socket) {
  struct Connection* place = free_place(server, connections);
  if (place) {
    *place = (struct Connection){.server = server, .socket = socket, .used = true};
    pthread_mutex_lock(&server->lock);
    place->used = pthread_create(&place->thread, NULL, run_connection, place) == 0;
    server->connections += place->used;
    pthread_mutex_unlock(&server->lock);
    if (place->used) return;
  }
  send_line(socket, error_answer("there are too many connections: try again later"));
  close(socket);
}

static int stop_pipe[2];

static void request_stop(int signal) {
  (void)signal;
  int before = errno;
  if (write(stop_pipe[1], "", 1) < 0) errno = before;
}

/* Shuts connections down and returns whether all have ended by then. */
static bool end_connections(struct Server* server, struct Connection* connections, int direction, long milliseconds) {
  struct timespec until = in_milliseconds(now(), milliseconds);
  for (struct Connection* place = connections; place < connections + MOST_CONNECTIONS; ++place)
    if (place->used) shutdown(place->socket, direction);
  pthread_mutex_lock(&server->lock);
  server->stopping = true;
  pthread_cond_signal(&server->arrival);
  while (server->connections > 0)
    if (pthread_cond_timedwait(&server->connection_ended, &server->lock, &until) == ETIMEDOUT) break;
  bool ended = server->connections == 0;
  pthread_mutex_unlock(&server->lock);
  return ended;
}

static bool serve(struct Server* server, int listener) {
  static struct Connection connections[MOST_CONNECTIONS];
  pthread_t batches;
  /* A client that is gone again must not make accept wait for the next one. */
  if (fcntl(listener, F_SETFL, O_NONBLOCK) != 0) return false;
  if (pthread_create(&batches, NULL, run_batches, server) != 0) return false;
  struct pollfd waited[2] = {{.fd = listener, .events = POLLIN}, {.fd = stop_pipe[0], .events = POLLIN}};
  while (!(waited[1].revents & POLLIN)) {
    if (poll(waited, 2, -1) < 0) {
      if (errno != EINTR) break;
      continue;
    }
    int socket = waited[0].revents & POLLIN ? accept(listener, NULL, NULL) : -1;
    if (socket >= 0)
      start_connection(server, connections, socket);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      is_ready(stop_pipe[0], POLLIN, in_milliseconds(now(), 100)); /* until another connection ends */
  }
  close(listener);
  /* Those who wait for a request end; those who wait for an answer get it first. */
  if (!end_connections(server, connections, SHUT_RD, ANSWERS_AT_STOP_MS) &&
      !end_connections(server, connections, SHUT_RDWR, ENDS_AT_STOP_MS)) {
    errno = ETIMEDOUT; /* a call of the model cannot be ended */
    return false;
  }
  for (struct Connection* place = connections; place < connections + MOST_CONNECTIONS; ++place)
    if (place->used) join_connection(place);
  pthread_mutex_lock(&server->lock);
  server->finished = true;
  pthread_cond_signal(&server->arrival);
  pthread_mutex_unlock(&server->lock);
  pthread_join(batches, NULL);
  printf("answered %ld requests in %ld batches\n", server->requests, server->batches);
  return true;
}

static int listen_at_port(long port) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &size) != 0)
    return -1;
  printf("listening at 127.0.0.1:%d\n", ntohs(address.sin_port));
  return listener;
}

static int listen_at_path(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, path);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, sizeof address) != 0 ||
      listen(listener, SOMAXCONN) != 0)
    return -1;
  printf("listening at %s\n", path);
  return listener;
}

/* Answers the lines of the standard input, each alone. */
static int answer_input(const reel_model* model) {
  static float values[MOST_NUMBERS];
  char* line = NULL;
  size_t capacity = 0;
  for (ssize_t length; (length = getline(&line, &capacity, stdin)) > 0;) {
    if (line[length - 1] == '\n') line[--length] = '\0';
    struct Request request = {.values = values}, *alone = &request;
    request.answer = length < MOST_LINE ? read_numbers(line, (size_t)length, &request) : error_answer(too_long);
    if (!request.answer) answer_batch(model, &alone, 1);
    puts(request.answer);
    free(request.answer);
  }
  free(line);
  return 0;
}

/* The number of an option; ends the program if it is none in [least, most]. */
static long number_of_option(const char* option, const char* text, long least, long most) {
  char* end;
  long number = strtol(text, &end, 10);
  if (end == text || *end || number < least || number > most) {
    fprintf(stderr, "serve: %s wants a number from %ld to %ld, not '%s'\n", option, least, most, text);
    exit(2);
  }
  return number;
}

int main(int count, char** arguments) {
  static struct Server server = {.max_batch = 32,
                                 .max_wait = 2,
                                 .idle_seconds = 60,
                                 .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .answered = PTHREAD_COND_INITIALIZER};
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&server.arrival, &monotonic);
  pthread_cond_init(&server.connection_ended, &monotonic);
  server.end = &server.first;
  const char* path = NULL;
  long port = -1;
  if (count < 3 || count % 2 == 0) {
    fputs("Usage: serve PLUGIN WEIGHTS [--port N | --socket PATH] [--max-batch N] [--max-wait MS] [--idle S]\n",
          stderr);
    return 2;
  }
  for (int i = 3; i < count; i += 2) {
    const char *option = arguments[i], *value = arguments[i + 1];
    if (strcmp(option, "--port") == 0) {
      port = number_of_option(option, value, 0, 65535);
    } else if (strcmp(option, "--socket") == 0) {
      path = value;
    } else if (strcmp(option, "--max-batch") == 0) {
      server.max_batch = number_of_option(option, value, 1, MOST_BATCH);
    } else if (strcmp(option, "--max-wait") == 0) {
      server.max_wait = number_of_option(option, value, 0, 10000);
    } else if (strcmp(option, "--idle") == 0) {
      server.idle_seconds = number_of_option(option, value, 1, 86400);
    } else {
      fprintf(stderr, "serve: there is no option %s\n", option);
      return 2;
    }
  }
  if (reel_model_load(arguments[1], arguments[2], &server.model) != REEL_OK) {
    fprintf(stderr, "serve: %s\n", reel_last_error());
    return 1;
  }
  int status = 0;
  if (port < 0 && !path) {
    status = answer_input(server.model);
  } else {
    struct sigaction stop = {.sa_handler = request_stop, .sa_flags = SA_RESTART};
    int listener = -1;
    /* A signal that comes again and again must not wait for room in the pipe. */
    if (pipe(stop_pipe) == 0 && fcntl(stop_pipe[1], F_SETFL, O_NONBLOCK) == 0) {
      sigaction(SIGTERM, &stop, NULL);
      sigaction(SIGINT, &stop, NULL);
      listener = path ? listen_at_path(path) : listen_at_port(port);
      fflush(stdout);
    }
    if (listener < 0 || !serve(&server, listener)) {
      fprintf(stderr, listener < 0 ? "serve: no requests can be taken: %s\n" : "serve: it has not ended well: %s\n",
              strerror(errno));
      status = 1;
    }
    if (listener >= 0 && path) unlink(path);
    if (listener >= 0 && status != 0) _exit(status); /* other threads may still use the model */
  }
  reel_model_free(server.model);
  return status;
}
