/** The cost of a chain of twelve plugins that pass a query on. Run with `node bench/in-process/chain.ts`. */
import { bench, do_not_optimize, run } from "mitata";
import { afterNext, type Handler, type Next, type Outcome } from "../../src/plugin/index.ts";
import { makeTestQuery } from "../../src/plugin/testing.ts";
import { buildChain } from "../../src/server/serving/chain.ts";

const PLUGINS = 12;

const query = makeTestQuery({ name: "storefront.shop.svc.cluster.local." });
const reply = query.reply();

const answerNow: Handler = () => reply;
const answerLater: Handler = () => Promise.resolve(reply);

const passOn: Handler = (passed, next) => next(passed);
const keep = (outcome: Outcome): Outcome => outcome;
const look: Handler = (passed, next) => afterNext(next(passed), passed, keep);
const awaitIt: Handler = async (passed, next) => await next(passed);

const sync = chainOf(passOn, answerNow);
bench("passed on, answered at once", () => do_not_optimize(sync(query)));
const looking = chainOf(look, answerNow);
bench("looked at on the way back, answered at once", () => do_not_optimize(looking(query)));
const late = chainOf(passOn, answerLater);
bench("passed on, answered later", async () => do_not_optimize(await asked(late)));
const lookingLate = chainOf(look, answerLater);
bench("looked at on the way back, answered later", async () => do_not_optimize(await asked(lookingLate)));
const awaiting = chainOf(awaitIt, answerNow);
bench("awaited by each plugin, answered at once", async () => do_not_optimize(await asked(awaiting)));

await run();

function chainOf(pass: Handler, answer: Handler): Next {
  const plugins = Array.from({ length: PLUGINS }, (_, index) => ({
    name: `plugin-${index}`,
    handle: index === PLUGINS - 1 ? answer : pass,
  }));
  const chain = buildChain(plugins, (_plugin, error) => {
    throw error;
  });
  if (chain === undefined) throw new Error("a chain without plugins");
  return chain;
}

/** Each query begins anew: the chain leaves the promise that it waits for on the query. */
function asked(chain: Next): Outcome | Promise<Outcome> {
  query.pending = undefined;
  return chain(query);
}
