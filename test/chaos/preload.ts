/**
 * Loaded into a gateway before its own code: gives it a clock that can be set wrong, and an end with its supervisor's.
 * Limit: moves what Date tells; timers and the monotonic clock go right, as they do on a machine with a wrong time.
 */
let offsetMs = Number(process.env.CHAOS_CLOCK_MS ?? 0);

const RealDate = Date;
const now = (): number => RealDate.now() + offsetMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given: unknown[], newTarget) =>
    Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});

process.on("message", (message) => {
  if (typeof message === "string" && message.startsWith("clock ")) offsetMs = Number(message.slice(6));
});
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
// Listening must not keep it alive.
process.channel?.unref();
