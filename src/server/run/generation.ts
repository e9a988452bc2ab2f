/** A configuration in force: the plugin instances of all blocks, linked and placed on listeners. */

import { type Diagnostic, formatPlace } from "../../corefile/diagnostic.ts";
import type { Scheme } from "../../corefile/server-key.ts";
import type { Name } from "../../dns/name.ts";
import type { Logger } from "../../lib/logging/log.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { withoutRest } from "../../lib/time/turn-share.ts";
import { ChangingNames } from "../../plugin/contract/changing-names.ts";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";
import type { PlacedPlugin, PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { BlockView } from "../../plugin/contract/server-view.ts";
import { type BlockSettings, defaultBlockSettings, type Site } from "../../plugin/contract/site.ts";
import { ECHOED_OPTIONS } from "../../plugin/message/echoed-options.ts";
import {
  type Configuration,
  ConfigurationError,
  type ConfiguredBlock,
  type ConfiguredPlugin,
} from "../configuration/configuration.ts";
import { type PlacedKey, placeListeners } from "../configuration/listen-places.ts";
import { setupDiagnostic, setupFault } from "../configuration/setup-fault.ts";
import { buildQueryChain, buildUpdateChain, type PanicObserver, witnessesOf } from "../serving/chain.ts";
import type { ListenerService } from "../serving/dns-listener.ts";
import { InFlight } from "../serving/in-flight.ts";
import { type Route, RouteTable } from "../serving/route-table.ts";
import { type GenerationOptions, makeSite } from "./plugin-site.ts";

/** A listen address of a configuration, with its service. */
export interface ListenPoint {
  /** `dns://127.0.0.1:53`. */
  readonly label: string;
  readonly scheme: Scheme;
  /** Empty for all addresses. */
  readonly host: string;
  readonly port: number;
  /** The place in the Corefile that names it first. */
  readonly place: string;
  /** Of the blocks on this address; the last block counts (docs/spec/coredns-behaviour.md#listeners). */
  readonly settings: BlockSettings;
  readonly service: ListenerService;
  /**
   * The number of data planes that listen here, from the first block on this address
   * (src/plugins/multisocket/README.md).
   */
  readonly sockets: number;
}

interface Block {
  readonly configured: ConfiguredBlock;
  readonly listeners: readonly PlacedKey[];
  /** Plugins that are created for every block, and named in another one. */
  readonly guests: readonly ConfiguredPlugin[];
  readonly placed: PlacedPlugin[];
}

export class Generation {
  readonly configuration: Configuration;
  readonly inFlight: InFlight = new InFlight();
  #listenPoints: readonly ListenPoint[] = [];
  /** The number of data planes that the configuration needs. */
  readonly planes: number;
  readonly debug: boolean;
  readonly #blocks: readonly Block[];
  /** See {@link Generation.#forgetful}. */
  #keepers: readonly PluginInstance[] | undefined;
  readonly #log: Logger;
  readonly #started: PluginInstance[] = [];
  readonly #origins = new Map<
    PluginInstance,
    { readonly plugin: ConfiguredPlugin; readonly index: number }
  >();

  /**
   * Makes all instances, in the order of the plugins and then of the blocks.
   * @param rest awaited between them
   * @throws ConfigurationError with the place of the directive whose `create` threw
   */
  static async make(
    configuration: Configuration,
    options: GenerationOptions,
    rest: () => Promise<void> = withoutRest,
  ): Promise<Generation> {
    const generation = new Generation(configuration, options.site.processLog);
    await generation.#make(options, rest);
    return generation;
  }

  /** Has no instances yet: see {@link Generation.make}. */
  constructor(configuration: Configuration, log: Logger) {
    this.configuration = configuration;
    this.#log = log;
    this.debug = configuration.blocks.some(({ settings }) => settings.debug);
    const everywhere = pluginsForEveryBlock(configuration.blocks);
    const listeners = placeListeners(configuration.blocks);
    this.#blocks = configuration.blocks.map((configured, index) => ({
      configured,
      listeners: listeners[index] ?? [],
      guests: [...everywhere.values()].flatMap(({ guest }) =>
        configured.plugins.some(({ definition }) => definition === guest.definition) ? [] : guest,
      ),
      placed: [],
    }));
    this.planes = Math.max(1, ...socketsByLabel(this.#blocks).values());
  }

  async #make(options: GenerationOptions, rest: () => Promise<void>): Promise<void> {
    const { configuration } = this;
    const changingNames = new ChangingNames(() => this.#forgetful());
    const common = { shared: new Map<string, unknown>(), changingNames };
    const everywhere = pluginsForEveryBlock(configuration.blocks);
    const sockets = socketsByLabel(this.#blocks);
    const { plane } = options;
    for (const { block, plugin } of this.#inSetupOrder()) {
      const { name, leaderOnly } = plugin.definition;
      if (plane > 0 && (leaderOnly === true || !listensIn(plane, block, sockets))) continue;
      const isGuest = block.guests.includes(plugin);
      const place = `${this.#blocks.indexOf(block)}/${name}`;
      await rest();
      const add = (index: number, feed: string, make: (site: Site) => readonly PluginInstance[]): void => {
        try {
          const site = makeSite(name, block, options, common, options.feed(`${place}/${feed}`));
          for (const instance of make(site)) {
            this.#origins.set(instance, { plugin, index });
            block.placed.push({ name, instance });
          }
        } catch (error) {
          throw setupFault(error, plugin, index, configuration.textOf);
        }
      };
      for (const [index, config] of isGuest ? [] : plugin.configs.entries())
        add(index, String(index), (site) => instancesOf(plugin.definition.create?.(config, site)));
      const said = everywhere.get(name)?.configs;
      if (said === undefined) continue;
      add(0, "every", (site) => plugin.definition.createForEveryBlock?.(said, site) ?? NO_INSTANCES);
    }
    const points = this.#makeListenPoints(options, sockets);
    this.#listenPoints = points.filter((point) => point.sockets > plane);
  }

  /** The instances that cache answers. */
  #forgetful(): readonly PluginInstance[] {
    this.#keepers ??= this.#blocks.flatMap(({ placed }) =>
      placed.flatMap(({ instance }) => (instance.forget === undefined ? [] : instance)),
    );
    return this.#keepers;
  }

  /** The addresses that this data plane listens on. */
  get listenPoints(): readonly ListenPoint[] {
    return this.#listenPoints;
  }

  /** The clusters that its plugins serve. */
  get clusters(): readonly ClusterClients[] {
    return this.#blocks.flatMap(({ placed }) => placed.flatMap(({ instance }) => instance.cluster ?? []));
  }

  /** Its server blocks, for display. */
  blockViews(): BlockView[] {
    return this.#blocks.map(({ configured, listeners, placed }) => {
      const span = configured.keys[0]?.span;
      return {
        keys: configured.keys.map(({ zone, port }) => `${zone}:${port}`),
        place: { file: span?.file ?? "", line: span?.line ?? 0, column: span?.column ?? 0 },
        listeners: [...new Set(listeners.map(({ label }) => label))],
        chain: configured.plugins.map(({ definition: { name } }) => ({
          name,
          handles: placed.some((plugin) => plugin.name === name && plugin.instance.handle !== undefined),
        })),
        plugins: placed,
      };
    });
  }

  /**
   * Runs the start hooks one after the other; when one fails, those that ran are stopped again.
   * @param rest awaited between them
   * @throws ConfigurationError with the place of the directive whose hook threw
   */
  async start(rest: () => Promise<void> = withoutRest): Promise<void> {
    for (const { instance } of this.#placedInOrder()) {
      await rest();
      this.#started.push(instance);
      try {
        await instance.start?.();
      } catch (error) {
        await this.stop();
        throw this.#faultOf(instance, error);
      }
    }
  }

  /**
   * Makes all plugins check the files that they will need.
   * @param takeWarnings the warnings logged since the last call
   * @returns the errors that would refuse the start, and the warnings
   */
  async examine(takeWarnings: () => readonly string[]): Promise<readonly Diagnostic[]> {
    const found: Diagnostic[] = [];
    takeWarnings();
    for (const { instance } of this.#placedInOrder()) {
      try {
        await instance.examine?.();
      } catch (error) {
        const fault = this.#faultOf(instance, error);
        if (!(fault instanceof ConfigurationError)) throw fault;
        found.push(...fault.diagnostics);
      }
      const warnings = takeWarnings();
      const origin = this.#origins.get(instance);
      if (origin === undefined) continue;
      const { plugin, index } = origin;
      found.push(...warnings.map((message) => setupDiagnostic("warning", message, plugin, index)));
    }
    return found;
  }

  #faultOf(instance: PluginInstance, error: unknown): unknown {
    const origin = this.#origins.get(instance);
    if (origin === undefined) return error;
    return setupFault(error, origin.plugin, origin.index, this.configuration.textOf);
  }

  /** Passes each plugin its predecessors in the old generation. */
  async inherit(old: Generation, rest: () => Promise<void>): Promise<void> {
    const predecessors = old.#placedInOrder();
    for (const { name, instance } of this.#placedInOrder()) {
      await rest();
      try {
        await instance.inherit?.(predecessors);
      } catch (error) {
        this.#log.child(`plugin/${name}`).error(messageOf(error));
      }
    }
  }

  /** Waits until the plugins have their data, or their patience has run out. Never rejects. */
  async warmUp(): Promise<void> {
    const waits = this.#placedInOrder().map(async ({ name, instance }) => {
      try {
        await instance.warmUp?.();
      } catch (error) {
        this.#log.child(`plugin/${name}`).error(messageOf(error));
      }
    });
    await Promise.all(waits);
  }

  started(): void {
    for (const { name, instance } of this.#placedInOrder()) {
      try {
        instance.started?.();
      } catch (error) {
        this.#log.child(`plugin/${name}`).error(messageOf(error));
      }
    }
  }

  /** Runs in parallel: two lame ducks of five seconds take five seconds. */
  async drain(): Promise<void> {
    await Promise.all(this.#placedInOrder().map(async ({ instance }) => instance.drain?.()));
  }

  /** @returns the number of hooks that failed; a failure does not keep the others from running */
  async shutdown(): Promise<number> {
    return this.#runHooks(this.#placedInOrder(), (instance) => instance.shutdown?.());
  }

  /**
   * @param rest awaited between the hooks
   * @returns the number of hooks that failed
   */
  async stop(rest?: () => Promise<void>): Promise<number> {
    const started = new Set(this.#started.splice(0));
    return this.#runHooks(
      this.#placedInOrder().filter(({ instance }) => started.has(instance)),
      (instance) => instance.stop?.(),
      rest,
    );
  }

  async #runHooks(
    placed: readonly PlacedPlugin[],
    hook: (instance: PluginInstance) => void | Promise<void> | undefined,
    rest: () => Promise<void> = withoutRest,
  ): Promise<number> {
    let failed = 0;
    for (const { name, instance } of placed) {
      await rest();
      try {
        await hook(instance);
      } catch (error) {
        failed++;
        this.#log.child(`plugin/${name}`).error(messageOf(error));
      }
    }
    return failed;
  }

  /**
   * Plugin by plugin, and for each the blocks in the order of the Corefile (docs/spec/coredns-behaviour.md#starting).
   */
  #placedInOrder(): PlacedPlugin[] {
    return this.#inSetupOrder().flatMap(({ block, plugin }) =>
      block.placed.filter(({ name }) => name === plugin.definition.name),
    );
  }

  #inSetupOrder(): { readonly block: Block; readonly plugin: ConfiguredPlugin }[] {
    return this.#blocks
      .flatMap((block) => [...block.configured.plugins, ...block.guests].map((plugin) => ({ block, plugin })))
      .sort((one, other) => one.plugin.position - other.plugin.position);
  }

  #makeListenPoints(options: GenerationOptions, sockets: ReadonlyMap<string, number>): ListenPoint[] {
    const groups = new Map<string, { first: PlacedKey; members: { block: Block; route: Route }[] }>();
    const onPanic = this.#panicObserver(options);
    for (const block of this.#blocks) {
      const { settings } = block.configured;
      if (block.listeners.length === 0) continue;
      const chain = buildQueryChain(block.placed, onPanic);
      const updateChain = settings.takesUpdates ? buildUpdateChain(block.placed, onPanic) : undefined;
      // One array for all zones of the block, as `RepeatedAnswers` compares it by identity.
      const witnesses = witnessesOf(block.placed);
      for (const placed of block.listeners) {
        const route = makeRoute(placed.zone, { chain, updateChain, witnesses }, block);
        const group = groups.get(placed.label);
        if (group === undefined) groups.set(placed.label, { first: placed, members: [{ block, route }] });
        else group.members.push({ block, route });
      }
    }
    return [...groups].map(
      ([
        label,
        {
          first: { key, host },
          members,
        },
      ]) => ({
        label,
        scheme: key.scheme,
        host,
        port: key.port,
        place: formatPlace(key.span),
        settings: listenerSettings(members.map(({ block }) => block.configured.settings)),
        service: this.#makeService(members, key.scheme),
        sockets: sockets.get(label) ?? 1,
      }),
    );
  }

  #makeService(
    members: readonly { readonly block: Block; readonly route: Route }[],
    scheme: Scheme,
  ): ListenerService {
    const placed = members.flatMap(({ block }) => block.placed);
    const allClasses = members.some(({ block }) =>
      block.configured.plugins.some(({ definition }) => definition.allClasses === true),
    );
    const { idleTimeout } = listenerSettings(members.map(({ block }) => block.configured.settings));
    return {
      idleTimeout,
      routes: new RouteTable(members.map(({ route }) => route)),
      allClasses,
      // On other listeners the opcode is NOTIMP, as in CoreDNS.
      takesUpdates:
        (scheme === "dns" || scheme === "tls") &&
        members.some(({ block }) => block.configured.settings.takesUpdates),
      deniesCompactly: members.some(({ block }) => block.configured.settings.deniesCompactly),
      observer: placed.find(({ instance }) => instance.unrouted !== undefined)?.instance,
      inFlight: this.inFlight,
      echoedOptions: new Set([
        ...ECHOED_OPTIONS,
        ...members.flatMap(({ block }) => block.configured.settings.echoedOptions),
      ]),
    };
  }

  #panicObserver({ panics, site }: GenerationOptions): PanicObserver {
    const withStack = this.configuration.blocks.some(
      ({ settings }) => settings.stackTraces || settings.debug,
    );
    return (plugin, error, query) => {
      panics.increment();
      const cause = error.cause instanceof Error ? error.cause : error;
      const detail = withStack ? `\n${cause.stack}` : "";
      site.processLog.error(
        `Recovered from panic in server: "${query.listener.label}" plugin/${plugin}: ${cause.message}${detail}`,
      );
    };
  }
}

const NO_INSTANCES: readonly PluginInstance[] = [];

function instancesOf(instance: PluginInstance | undefined): readonly PluginInstance[] {
  return instance === undefined ? NO_INSTANCES : [instance];
}

/** Plugins that are created for every block, by name, with all their configuration. */
function pluginsForEveryBlock(
  blocks: readonly ConfiguredBlock[],
): Map<string, { readonly guest: ConfiguredPlugin; readonly configs: unknown[] }> {
  const found = new Map<string, { readonly guest: ConfiguredPlugin; readonly configs: unknown[] }>();
  for (const plugin of blocks.flatMap(({ plugins }) => plugins)) {
    const { name } = plugin.definition;
    if (plugin.definition.createForEveryBlock === undefined) continue;
    const known = found.get(name);
    if (known === undefined) found.set(name, { guest: plugin, configs: [...plugin.configs] });
    else known.configs.push(...plugin.configs);
  }
  return found;
}

/** The first block of a listener sets its number of sockets. */
function socketsByLabel(blocks: readonly Block[]): Map<string, number> {
  const sockets = new Map<string, number>();
  for (const { listeners, configured } of blocks) {
    for (const { label } of listeners) {
      if (!sockets.has(label)) sockets.set(label, configured.settings.sockets);
    }
  }
  return sockets;
}

function listensIn(plane: number, { listeners }: Block, sockets: ReadonlyMap<string, number>): boolean {
  return listeners.some(({ label }) => (sockets.get(label) ?? 1) > plane);
}

function makeRoute(
  zone: Name,
  ways: Pick<Route, "chain" | "updateChain" | "witnesses">,
  block: Block,
): Route {
  const instances = block.placed.map(({ instance }) => instance);
  const collector = instances.find((instance) => instance.metadataZones !== undefined);
  return {
    zone,
    ...ways,
    servesZone: () =>
      instances.some((each) => each.transferSource?.transferZones.some((apex) => apex.equals(zone))),
    filters: instances.filter((instance) => instance.accepts !== undefined),
    metadata:
      collector?.metadataZones === undefined
        ? undefined
        : {
            zones: collector.metadataZones,
            providers: instances.filter((instance) => instance.provideMetadata !== undefined),
          },
  };
}

/**
 * Limits are those of the last block. A proxy in front of a listener is in front of all its blocks, whichever names
 * it, and a block without a certificate removes none.
 */
function listenerSettings(blocks: readonly BlockSettings[]): BlockSettings {
  const last = blocks.at(-1) ?? defaultBlockSettings();
  const greeting = blocks.findLast((settings) => settings.greeting !== undefined)?.greeting;
  const identity = blocks.findLast((settings) => settings.identity !== undefined)?.identity;
  return last.greeting === greeting && last.identity === identity ? last : { ...last, greeting, identity };
}
