/**
 * Modules of Node that must not be imported by name. The namespace object of `import` reads every property of the
 * module, and some are getters that load a whole subsystem: `node:http` brings the HTTP client behind `WebSocket`,
 * `node:crypto` all of Web Crypto. That costs memory and start-up time for code that is not used here.
 */

/** `node:http` as a function, so that it is loaded when the first socket is opened. */
export function nodeHttp(): typeof import("node:http") {
  return process.getBuiltinModule("node:http");
}

export function nodeHttps(): typeof import("node:https") {
  return process.getBuiltinModule("node:https");
}

export function nodeCrypto(): typeof import("node:crypto") {
  return process.getBuiltinModule("node:crypto");
}

export function nodeTls(): typeof import("node:tls") {
  return process.getBuiltinModule("node:tls");
}

export function nodeHttp2(): typeof import("node:http2") {
  return process.getBuiltinModule("node:http2");
}

export function nodeChildProcess(): typeof import("node:child_process") {
  return process.getBuiltinModule("node:child_process");
}
