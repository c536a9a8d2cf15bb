/**
 * A supervisor and its gateways as far as connections go: two processes of this program on one port, each with room for
 * one connection. Sends the port when both listen. It runs the build; the test bundles it.
 */
import { Connection } from "../../build/doors/http/connection.js";
import { listen } from "../../build/doors/http/listener.js";
import { channelToSupervisor, forkWith } from "../../build/gateways/fork.js";

if (channelToSupervisor()) {
  const serve = (request, response) => {
    // As with a valid token: a connection without one would be closed for the next.
    Connection.of(request.socket).identify("caller:test");
    response.end("served");
  };
  const options = { host: "127.0.0.1", port: 0, now: () => performance.now(), most: 1 };
  const { port } = await listen({ serve }, options);
  process.send?.({ port });
} else {
  const fork = forkWith((line) => process.stderr.write(`${line}\n`));
  const [port] = await Promise.all(
    [fork(), fork()].map(({ onMessage }) => new Promise((resolve) => onMessage(({ port }) => resolve(port)))),
  );
  process.send?.({ port });
  process.on("disconnect", () => process.exit(0));
}
