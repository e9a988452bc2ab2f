import { readFile } from "node:fs/promises";
import { Console } from "../../console/console.ts";
import { ConsoleApi } from "../../console/console-api.ts";
import { FleetWatch } from "../../console/fleet-watch.ts";
import { Access } from "../../console/http/access.ts";
import { isLoopbackHost } from "../../console/http/loopback.ts";
import { lookUp } from "../../console/own-lookup.ts";
import { PageFiles } from "../../console/page-files.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import type { SettableLevel } from "../../lib/logging/log.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { reachableHost } from "../../plugin/contract/site.ts";
import {
  type PlacedPlugin,
  type PluginInstance,
  SetupError,
  type Site,
  type Timer,
} from "../../plugin/index.ts";

export interface ConsoleSettings {
  readonly address: string;
  readonly tokenFile: string | undefined;
  readonly fleet: readonly string[];
}

/** State that the blocks of one configuration share. */
interface SharedState {
  /** The instance that serves, once a block has configured it. */
  leader: ConsolePlugin | undefined;
}

/** A message from the leader to the followers. */
interface LevelMessage {
  readonly level: SettableLevel;
}

/** Milliseconds after the start until the page is prepared, when there is more time for it. */
const PREPARE_AFTER = 3_000;

/** A shorter token could be guessed. */
const SHORTEST_TOKEN = 16;

/** There is one for the whole server: all blocks with the directive share it. */
export class ConsolePlugin implements PluginInstance {
  readonly #settings: ConsoleSettings;
  readonly #site: Site;
  readonly #shared: SharedState;
  readonly #console: Console;
  #token: string | undefined;
  #access: Access | undefined;
  /** The sessions of the previous configuration. */
  #accessBefore: Access | undefined;
  #stopWriting: (() => void) | undefined;
  readonly #page = new PageFiles();
  #preparing: Timer | undefined;

  constructor(settings: ConsoleSettings, site: Site) {
    this.#settings = settings;
    this.#site = site;
    this.#console = new Console(site);
    this.#shared = site.shared<SharedState>("state", () => ({ leader: undefined }));
    this.#shared.leader ??= this;
    const first = this.#shared.leader.#settings.address;
    if (first !== settings.address) {
      throw new SetupError(
        `there is one 'console' for the whole server, which is already at ${first}: write the same address, not ${settings.address}`,
      );
    }
    if (!this.#serves) return;
    // Other threads record their answers in memory that this thread reads.
    site.feed.provide(() => [this.#console.addThread()]);
    site.feed.receive((message) => {
      if (message instanceof SharedArrayBuffer) this.#stopWriting = site.queries.writeTo(message);
      else if (isLevelMessage(message)) this.#setLevel(message.level);
    });
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    if (!this.#serves) return;
    for (const { instance } of predecessors)
      if (instance instanceof ConsolePlugin && instance.#serves) {
        this.#console.inherit(instance.#console.memory);
        this.#accessBefore = instance.#access;
      }
  }

  async start(): Promise<void> {
    const { feed, http, control, clock, log } = this.#site;
    if (!this.#serves || feed.role === "follower") return;
    this.#token = await this.#readToken();
    const { address } = this.#settings;
    const separator = address.lastIndexOf(":");
    const host = address.slice(0, separator);
    const access = new Access({
      token: () => this.#token,
      isLoopback: isLoopbackHost(host),
      now: () => clock.now(),
    });
    this.#access = access;
    if (this.#accessBefore !== undefined) access.inherit(this.#accessBefore);
    this.#accessBefore = undefined;
    let shown = address;
    const fleet = new FleetWatch({
      sources: this.#settings.fleet,
      token: () => this.#token,
      lookUp: (name) => lookUp(name, control),
      now: () => clock.now(),
      own: () => ({ address: shown, now: this.#console.now(), sha512: control.sha512 }),
    });
    const api = new ConsoleApi({
      console: this.#console,
      access,
      control,
      fleet,
      page: this.#page,
      log,
      clock,
      setLevel: (level) => {
        this.#setLevel(level);
        feed.publish({ level } satisfies LevelMessage);
        return feed.taken();
      },
    });
    for (const [path, handler] of api.routes()) {
      const { port } = await http.serve(address, path, handler);
      shown = `${host}:${port}`;
    }
    this.#console.listen();
    log.info(`the console is at http://${reachableHost(host)}:${shown.slice(shown.lastIndexOf(":") + 1)}/`);
  }

  started(): void {
    const { feed, clock, log } = this.#site;
    if (!this.#serves || feed.role !== "leader") return;
    this.#console.start();
    this.#preparing = clock.after(PREPARE_AFTER, () => {
      const session = { readNeedsToken: false, hasToken: false, signedIn: false, csrf: "" };
      this.#page.prepare({ session, now: this.#console.now() }).catch((error: unknown) => {
        log.error(`the page: ${messageOf(error)}`);
      });
    });
  }

  stop(): void {
    this.#preparing?.cancel();
    this.#stopWriting?.();
    this.#console.stop();
  }

  #setLevel(level: SettableLevel): void {
    const { log } = this.#site.control;
    if (log !== undefined) log.level = level;
  }

  get #serves(): boolean {
    return this.#shared.leader === this;
  }

  /** @throws SetupError */
  async #readToken(): Promise<string | undefined> {
    const { tokenFile } = this.#settings;
    if (tokenFile === undefined) return undefined;
    const path = this.#site.resolvePath(tokenFile);
    let token: string;
    try {
      token = (await readFile(path, "utf8")).trim();
    } catch (error) {
      throw new SetupError(`token_file: ${path}: ${fileFault(error)}`);
    }
    if (token.length >= SHORTEST_TOKEN) return token;
    throw new SetupError(
      `token_file: ${path} holds fewer than ${SHORTEST_TOKEN} characters, which could be guessed`,
    );
  }
}

function isLevelMessage(message: unknown): message is LevelMessage {
  return typeof message === "object" && message !== null && "level" in message;
}
