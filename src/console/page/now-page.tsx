import { history, now } from "./api.ts";
import { Now } from "./now.tsx";

export function NowPage() {
  const view = now.value;
  return view === undefined ? <p>Waiting for the server …</p> : <Now view={view} points={history.value} />;
}
