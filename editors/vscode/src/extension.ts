/** Starts `portolan language-server` for Corefiles. */
import { type ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(
    workspace.onDidChangeConfiguration(async (event) => {
      if (!event.affectsConfiguration("portolan")) return;
      await deactivate();
      await start();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.isRunning() === true) await running.stop();
}

async function start(): Promise<void> {
  const settings = workspace.getConfiguration("portolan");
  const command = settings.get<string>("command", "portolan");
  const args = ["language-server", ...settings.get<string[]>("arguments", [])];
  client = new LanguageClient(
    "portolan",
    "Portolan",
    { command, args, transport: TransportKind.stdio },
    { documentSelector: [{ language: "corefile" }] },
  );
  try {
    await client.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await window.showErrorMessage(
      `Cannot start "${command} ${args.join(" ")}": ${reason}. Install Portolan, or set portolan.command.`,
    );
  }
}
