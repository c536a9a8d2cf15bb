/** A mail server of the test's own, which keeps what it accepts. It offers STARTTLS with a certificate that nobody trusts. */
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { onTestFinished } from "vitest";

interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isSecure: boolean;
  /** Who sent it, as it signed in. */
  readonly user: string | undefined;
}

/** A status, and the text after it. */
type Refusal = number | `${number} ${string}`;

interface MailServerOptions {
  /** What it answers to a mailbox, to a sender, and after the data; undefined: accepted. */
  readonly mailbox?: (address: string) => Refusal | undefined;
  readonly sender?: () => Refusal | undefined;
  readonly data?: (count: number) => Refusal | undefined;
  readonly offersTls?: boolean;
  readonly password?: string;
  /** The port of an earlier one, to come back there. */
  readonly port?: number;
}

function refusal(reply: Refusal) {
  const [status, ...words] = String(reply).split(" ");
  return Object.assign(new Error(words.join(" ") || "refused"), { responseCode: Number(status) });
}
const orRefusal = (reply: Refusal | undefined) => (reply === undefined ? null : refusal(reply));

export async function startMailServer(options: MailServerOptions = {}) {
  const { mailbox, sender, data, offersTls = false, password, port = 0 } = options;
  /** All that was sent, also what it refused. */
  const received: Mail[] = [];
  const settings: SMTPServerOptions = {
    logger: false,
    // In milliseconds: the clients keep connections open.
    closeTimeout: 10,
    authOptional: password === undefined,
    allowInsecureAuth: true,
    disabledCommands: offersTls ? [] : ["STARTTLS"],
    onAuth: (auth, _session, callback) =>
      auth.password === password ? callback(null, { user: auth.username ?? "" }) : callback(refusal(535)),
    onMailFrom: (_address, _session, callback) => callback(orRefusal(sender?.())),
    onRcptTo: ({ address }, _session, callback) => callback(orRefusal(mailbox?.(address))),
    async onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(Buffer.from(chunk));
      const { mailFrom, rcptTo } = session.envelope;
      received.push({
        from: mailFrom ? mailFrom.address : "",
        to: rcptTo.map(({ address }) => address),
        ...parse(Buffer.concat(chunks).toString()),
        isSecure: session.secure,
        user: session.user === undefined ? undefined : String(session.user),
      });
      callback(orRefusal(data?.(received.length)));
    },
  };
  const server = new SMTPServer(settings);
  // A client that does not trust it hangs up.
  server.on("error", () => undefined);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
  onTestFinished(stop);
  const address = server.server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { port: address.port, received, stop };
}

function parse(mail: string): Pick<Mail, "headers" | "body"> {
  const end = mail.indexOf("\r\n\r\n");
  const lines = mail
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, " ")
    .split("\r\n");
  const headers = lines.map((line) => {
    const at = line.indexOf(":");
    return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const;
  });
  // Quoted-printable; the tests write ASCII only.
  const body = mail
    .slice(end + 4)
    .replaceAll("=\r\n", "")
    .replaceAll(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return { headers: Object.fromEntries(headers), body: body.replaceAll("\r\n", "\n") };
}
