import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDnsperf } from "./dnsperf.ts";

const OUTPUT = `DNS Performance Testing Tool
Version 2.10.0

[Status] Command line: dnsperf -s 127.0.0.1 -p 15353 -d queries.txt -l 1
[Status] Sending queries (to 127.0.0.1:15353)
[Status] Started at: Fri May 10 12:10:52 2024
[Status] Stopping after 1.000000 seconds
[Status] Testing complete (time limit)

Statistics:

  Queries sent:         311655
  Queries completed:    311650 (100.00%)
  Queries lost:         5 (0.00%)

  Response codes:       NOERROR 300000 (96.26%), NXDOMAIN 11640 (3.73%), SERVFAIL 10 (0.00%)
  Average packet size:  request 36, response 36
  Run time (s):         1.000087
  Queries per second:   311627.888374

  Average Latency (s):  0.000223 (min 0.000016, max 0.002926)
  Latency StdDev (s):   0.000154

Connection Statistics:

  Reconnections:        0
`;

test("the statistics of dnsperf are read", () => {
  assert.deepEqual(parseDnsperf(OUTPUT), {
    sent: 311_655,
    answered: 311_650,
    lost: 5,
    seconds: 1.000087,
    rcodes: { NOERROR: 300_000, NXDOMAIN: 11_640, SERVFAIL: 10 },
  });
});

test("a server that answers nothing has no response codes", () => {
  const silent = OUTPUT.replace(/^ *Response codes.*\n/m, "").replace("311650 (100.00%)", "0 (0.00%)");
  const { answered, rcodes } = parseDnsperf(silent);
  assert.equal(answered, 0);
  assert.deepEqual(rcodes, {});
});

test("output without statistics is an error that shows it", () => {
  assert.throws(() => parseDnsperf("Error: unable to open input file"), /unable to open input file/);
});
