/** Milliseconds between two looks at the parent. */
const INTERVAL = 500;

/**
 * Whether `npx portolan` runs this process: npm starts `sh -c "'portolan'" …`, and says so to what runs in it.
 * @param {NodeJS.ProcessEnv} env
 */
export function isRunByNpx(env) {
  return env.npm_lifecycle_event === "npx" && /^["']?portolan\b/.test(env.npm_lifecycle_script ?? "");
}

/** Process id of the launcher that started this process, where that waits for it: it could be killed without a word. */
export const LAUNCHER_VARIABLE = "PORTOLAN_LAUNCHER";

/**
 * Ends this process by SIGTERM once its parent is gone. npm hands SIGTERM to the shell between it and the program, and the shell dies of
 * it alone; a launcher that is killed hands on nothing. Then the program runs on, and no process stops it.
 */
export function endWithParent() {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, INTERVAL);
  timer.unref();
}
