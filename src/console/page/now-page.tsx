import type { WhoView } from "../api-types.ts";
import { connection, history, now } from "./api.ts";
import { useAnswer } from "./loaded.ts";
import { Now } from "./now.tsx";
import { ShortTop } from "./who.tsx";

export function NowPage() {
  const view = now.value;
  if (view === undefined) return <p>Waiting for the server …</p>;
  return (
    <>
      <Now view={view} points={history.value} />
      {/* The server has drawn what is above, and the stream comes first. */}
      {connection.value === "live" && <Most />}
    </>
  );
}

function Most() {
  const { answer } = useAnswer<WhoView>("who", { rows: "5" }, 5_000);
  if (answer === undefined) return null;
  const { clients, names, queries } = answer;
  return (
    <div class="columns">
      <ShortTop title="Most frequent names" parameter="name" rows={names} total={queries} />
      <ShortTop title="Most frequent clients" parameter="client" rows={clients} total={queries} />
    </div>
  );
}
