/** What the thread runs that compares passwords with bcrypt hashes: it takes long on purpose, and never where queries are answered. */
import { parentPort } from "node:worker_threads";
import { compareSync } from "bcryptjs";
import type { Guess } from "./password-comparer.ts";

const port = parentPort;
port?.on("message", ({ password, hash }: Guess) => port.postMessage(compareSync(password, hash)));
