/** `trace`: sends traces of queries to a collector. */

import type { SecureContext } from "node:tls";
import { PrefixSet, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import { tlsFiles } from "../../plugin/config/tls-files.ts";
import {
  definePlugin,
  directive,
  duration,
  flag,
  integer,
  octetCount,
  option,
  optional,
  optionList,
  required,
  rest,
  type Site,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { readTlsFiles, tlsContext } from "../../upstream/encrypted/tls-files.ts";
import { Collector } from "./collector.ts";
import { DatadogFormat } from "./datadog.ts";
import { type CollectorKind, readCollector } from "./endpoint.ts";
import { Exporter } from "./exporter.ts";
import { OtlpFormat } from "./otlp.ts";
import type { Sender, SpanFormat } from "./span-format.ts";
import { Tracer } from "./tracer.ts";
import { ZipkinFormat } from "./zipkin.ts";

const DEFAULT_QUEUE = 4 * 1024 * 1024;
/** Zipkin's default number of spans, and milliseconds. */
const DEFAULT_BACKLOG = 1_000;
const DEFAULT_BATCH = 100;
/** Spans in one request to another kind of collector. */
const LARGE_BATCH = 1_000;
const DEFAULT_INTERVAL = 1_000;

export default definePlugin({
  name: "trace",
  summary: "Sends traces of queries to Zipkin, Datadog or an OpenTelemetry collector.",
  config: directive({
    args: { words: rest(text()) },
    options: {
      every: single(integer({ min: 0 })),
      errors: flag(),
      slower: single(duration({ min: 0 })),
      client: optionList({ networks: rest(network(), 1) }),
      parent: flag(),
      service: single(text(), "coredns"),
      client_server: option({ value: optional(truth(), true) }),
      tls: option({ files: tlsFiles }),
      header: optionList({ name: required(headerName()), value: required(headerValue()) }),
      queue: single(octetCount({ min: 64 * 1024, max: 256 * 1024 * 1024 }), DEFAULT_QUEUE),
      datadog_analytics_rate: single(rate()),
      zipkin_max_backlog_size: single(integer({ min: 1, max: 10_000_000 }), DEFAULT_BACKLOG),
      zipkin_max_batch_size: single(integer({ min: 1, max: 1_000_000 }), DEFAULT_BATCH),
      zipkin_max_batch_interval: single(duration({ min: 1 }), DEFAULT_INTERVAL),
    },
    occurrences: "last",
    check({ words, tls }, report, at) {
      const place = readCollector(words);
      if (typeof place !== "string") {
        if (tls !== undefined && place.url.protocol !== "https:")
          report.warning("TRACE_TLS", at("tls"), "'tls' has no effect: the endpoint is not https://");
        return;
      }
      report.error("PLUGIN_BAD_VALUE", at(), place, {
        expected: "trace [zipkin|datadog|otlp] [ENDPOINT]",
      });
    },
  }),
  create: (config, site) => {
    const place = readCollector(config.words);
    if (typeof place === "string") throw new RangeError(place);
    const { kind, url } = place;
    const { every, errors, slower, client, parent, service } = config;
    const clients = new PrefixSet<true>();
    for (const { networks } of client) for (const one of networks) clients.add(one, true);
    const hasOtherRules = errors || slower !== undefined || parent || clients.size > 0;
    const isZipkin = kind === "zipkin";
    return new Tracer(
      {
        rules: {
          every: every ?? (hasOtherRules ? 0 : 1),
          errors,
          slower,
          clients: clients.size > 0 ? clients : undefined,
          parent,
        },
        sharesSpans: config.client_server?.value ?? false,
        exporter: new Exporter({
          format: formatOf(kind, senderOf(service, site), config.datadog_analytics_rate),
          collector: new Collector(url, site.clock, () => trustOf(config.tls?.files ?? [], site)),
          headers: Object.fromEntries(config.header.map(({ name, value }) => [name, value])),
          maxOctets: config.queue,
          maxSpans: isZipkin ? config.zipkin_max_backlog_size : Number.POSITIVE_INFINITY,
          batchSpans: isZipkin ? config.zipkin_max_batch_size : LARGE_BATCH,
          interval: isZipkin ? config.zipkin_max_batch_interval : DEFAULT_INTERVAL,
          clock: site.clock,
          random: site.random,
          log: site.log,
          metrics: site.metrics,
        }),
      },
      site,
    );
  },
});

function senderOf(service: string, { machine, version }: Site): Sender {
  return { service, hostname: machine.hostname, version };
}

/** The CAs of the system unless others are configured, as in Go programs. */
async function trustOf(files: readonly string[], site: Site): Promise<SecureContext> {
  return tlsContext(await readTlsFiles(files, site));
}

function formatOf(kind: CollectorKind, sender: Sender, analyticsRate: number | undefined): SpanFormat {
  if (kind === "zipkin") return new ZipkinFormat(sender);
  return kind === "otlp" ? new OtlpFormat(sender) : new DatadogFormat(sender, analyticsRate);
}

function network(): Value<string> {
  return {
    expected: "an IP address, or a network such as 10.0.0.0/8",
    parse: (word) =>
      parseIpPrefix(word) === undefined ? new ValueProblem(`'${word}' is not an address or network`) : word,
  };
}

/** Parsed as in Go. */
function truth(): Value<boolean> {
  return {
    expected: "true or false",
    parse(word) {
      if (/^(1|t|T|TRUE|true|True)$/.test(word)) return true;
      return /^(0|f|F|FALSE|false|False)$/.test(word)
        ? false
        : new ValueProblem(`'${word}' is neither true nor false`);
    },
  };
}

function rate(): Value<number> {
  return {
    expected: "a number from 0 to 1",
    parse(word) {
      const value = /^\d*\.?\d+$/.test(word) ? Number(word) : Number.NaN;
      return value <= 1
        ? value
        : new ValueProblem(`datadog analytics rate must be between 0 and 1, '${word}' is not supported`);
    },
  };
}

function headerName(): Value<string> {
  return {
    expected: "the name of a header",
    parse: (word) =>
      /^[!#$%&'*+.^_`|~\w-]+$/.test(word)
        ? word.toLowerCase()
        : new ValueProblem(`'${word}' is not a header name`),
  };
}

function headerValue(): Value<string> {
  return {
    expected: "the value of the header",
    // The value may be a secret: errors do not repeat it.
    parse: (word) =>
      /^[\t\x20-\x7e]*$/.test(word) ? word : new ValueProblem("the value of a header is printable ASCII"),
  };
}
