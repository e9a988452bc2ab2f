/** What the server draws into the document: the page that is shown unless another is wanted, as the script draws it when it has come. */
import type { FirstView } from "../api-types.ts";
import { markupOf } from "./markup.ts";
import { Now } from "./now.tsx";
import { Shell } from "./shell.tsx";

export function drawFirstFrame({ session, now }: FirstView): string {
  return markupOf(
    <Shell page="now" hostname={now.hostname} connection="connecting" session={session}>
      <Now view={now} points={now.history.points} />
    </Shell>,
  );
}
