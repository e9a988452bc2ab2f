/** `route53` against moto, which is no part of `npm test`: node test/route53-moto.ts URL, where moto_server listens. */
import assert from "node:assert/strict";
import {
  ChangeResourceRecordSetsCommand,
  CreateHostedZoneCommand,
  Route53Client,
} from "@aws-sdk/client-route-53";
import { PluginTest } from "../src/plugin/testing.ts";
import route53 from "../src/plugins/route53/index.ts";

const RECORDS = 700;
const [, , endpoint = "http://127.0.0.1:5000"] = process.argv;
const credentials = { accessKeyId: "key", secretAccessKey: "secret" };
const client = new Route53Client({ region: "us-east-1", endpoint, credentials });
const created = await client.send(
  new CreateHostedZoneCommand({ Name: "example.org.", CallerReference: "1" }),
);
const id = created.HostedZone?.Id?.replace("/hostedzone/", "") ?? "";
const Changes = Array.from({ length: RECORDS }, (_, index) => ({
  Action: "CREATE" as const,
  ResourceRecordSet: {
    Name: `host${index}.example.org.`,
    Type: "A" as const,
    TTL: 60,
    ResourceRecords: [{ Value: `192.0.2.${index % 256}` }],
  },
}));
// moto makes no SOA record, as Route 53 does.
const soa = {
  Name: "example.org.",
  Type: "SOA" as const,
  TTL: 900,
  ResourceRecords: [{ Value: "ns.test. h.test. 1 7200 900 1209600 86400" }],
};
const all = [{ Action: "UPSERT" as const, ResourceRecordSet: soa }, ...Changes];
await client.send(new ChangeResourceRecordSetsCommand({ HostedZoneId: id, ChangeBatch: { Changes: all } }));
client.destroy();

const text = `route53 example.org.:${id} {\naws_access_key key secret\naws_endpoint ${endpoint}\n}`;
const running = PluginTest.of(route53, text);
await running.start();
for (let index = 0; index < RECORDS; index++) {
  const name = `host${index}.example.org.`;
  assert.deepEqual((await running.ask({ name })).answer, [`${name} 60 IN A 192.0.2.${index % 256}`]);
}
process.stdout.write(`${running.instances[0]?.describeState?.().join("\n")}\n`);
await running.stop();
