/** The page as the server draws it into the document: the default page, drawn as the script will draw it. */
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
