/** The thread that compares passwords with bcrypt hashes, which is slow on purpose and must not delay queries. */
import { parentPort } from "node:worker_threads";
import { compareSync } from "bcryptjs";
import type { Guess } from "./password-comparer.ts";

const port = parentPort;
port?.on("message", ({ password, hash }: Guess) => port.postMessage(compareSync(password, hash)));
