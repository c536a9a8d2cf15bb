import { useSignal } from "@preact/signals";
import type { TargetedSubmitEvent } from "preact";
import type { NewToken } from "../../client/admin.ts";
import { periodsText } from "../../client/period-budgets.ts";
import type { TokenInfo } from "../../schema/token.ts";
import { agents } from "../data/agents.ts";
import { session } from "../session/session.ts";
import { Age, Left } from "../ui/age.tsx";
import { CommandLine } from "../ui/command-line.tsx";
import { Confirm } from "../ui/confirm.tsx";
import { CopyLine } from "../ui/copy.tsx";
import { Empty } from "../ui/empty.tsx";
import { orGone } from "../ui/or-gone.ts";
import { Problem } from "../ui/problem.tsx";
import { useAction } from "../ui/use-action.ts";
import { useLoaded } from "../ui/use-loaded.ts";
import { useSearch } from "../ui/use-search.tsx";
import { Windowed } from "../ui/windowed.tsx";
import { BudgetFields, budgetsIn } from "./budget-fields.tsx";

/** The tokens of all principals. A secret is shown once, when it is made. */
export function Tokens() {
  const { value, error, reload } = useLoaded("tokens", ({ admin }, signal) => admin.listTokens({ signal }));
  const fresh = useSignal<NewToken | null>(null);
  const { field, fitting } = useSearch(value ?? [], "token", ({ principal }) => principal);
  return (
    <section aria-label="Tokens">
      <h1>
        Tokens {value !== null && value.length > 0 && <small>{value.length.toLocaleString("en")}</small>}
      </h1>
      <NewTokenForm
        onMade={(token) => {
          fresh.value = token;
          reload();
        }}
      />
      {fresh.value && (
        <div class="secret" role="status">
          <p>
            The token of <b>{fresh.value.principal}</b>. It is shown only now.
          </p>
          <CopyLine text={fresh.value.token} />
        </div>
      )}
      <Problem error={error} />
      {value?.length === 0 && (
        <Empty title="No token yet" line={<CommandLine command="token create caller:alice" />}>
          A token lets one principal in: an agent's worker, somebody who delegates, approves or only looks.
        </Empty>
      )}
      {field}
      <Windowed items={fitting} keyOf={({ id }) => id} kind="tokens">
        {(token) => <Token token={token} onRevoked={reload} />}
      </Windowed>
    </section>
  );
}

function Token({ token, onRevoked }: { readonly token: TokenInfo; readonly onRevoked: () => void }) {
  const { id, principal, created_at, expires_at } = token;
  const revoke = async () => {
    await orGone(session.value?.connection.admin.revokeToken(id));
    onRevoked();
  };
  return (
    <div class="token">
      <b title={principal}>{principal}</b>
      <code>{id}</code>
      <span class="dim">
        made <Age at={created_at} ago />
        {expires_at !== null && (
          <>
            , <Left until={expires_at} />
          </>
        )}
        {token.budgets && `, budget: ${periodsText(token.budgets)}`}
        {token.max_priority !== undefined && `, priority at most ${token.max_priority}`}
      </span>
      <Confirm
        verb="Revoke"
        object={`the token of ${principal} ${id}`}
        question={`Revoke this token of ${principal}?`}
        danger
        onConfirm={revoke}
      >
        <p>The token stops working within a second, also in open streams.</p>
      </Confirm>
    </div>
  );
}

const DAY_SECONDS = 86_400;
/** Ten years, as the broker takes. */
const MOST_DAYS = 3650;
const KINDS = ["caller", "approver", "viewer", "agent"] as const;

function NewTokenForm({ onMade }: { readonly onMade: (token: NewToken) => void }) {
  const kind = useSignal<string>("caller");
  const name = useSignal("");
  const round = useSignal(0);
  const { isRunning, error, run } = useAction();
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const element = event.currentTarget;
    const form = new FormData(element);
    const numberOf = (field: string) => (form.get(field) ? Number(form.get(field)) : undefined);
    const days = numberOf("days");
    void run(async () => {
      const made = await session.value?.connection.admin.createToken(`${kind.value}:${name.value}`, {
        maxPriority: numberOf("priority"),
        expiresInSeconds: days && days * DAY_SECONDS,
        budgets: budgetsIn(form),
      });
      if (made) onMade(made);
      name.value = "";
      // The limits of one token are not those of the next.
      element.reset();
      round.value += 1;
    });
  };
  return (
    <form class="inline" onSubmit={submit}>
      <label>
        <span>For</span>
        <select
          value={kind.value}
          onChange={(event) => {
            kind.value = event.currentTarget.value;
          }}
        >
          {KINDS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label>
        <span>Name</span>
        <input
          required
          pattern="[a-z0-9][a-z0-9_\-]{0,62}"
          title="Small letters, digits, - and _; at most 63"
          list={kind.value === "agent" ? "agent-names" : undefined}
          placeholder={`for example ${kind.value === "agent" ? "scout" : "alice"}`}
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
      </label>
      <label>
        <span>Priority at most</span>
        <input type="number" name="priority" min={0} max={9} placeholder="9" />
      </label>
      <datalist id="agent-names">
        {agents.value?.map((agent) => (
          <option key={agent.name} value={agent.name} />
        ))}
      </datalist>
      <button type="submit" disabled={isRunning}>
        Create token
      </button>
      <details class="token-limits">
        <summary>When it ends, and what its work may use</summary>
        <div class="fields settings">
          <label>
            <span>
              Ends after <small>days</small>
            </span>
            <input
              type="number"
              name="days"
              aria-label="Ends after, in days"
              min={1}
              max={MOST_DAYS}
              placeholder="never"
            />
          </label>
          <BudgetFields key={round.value} />
        </div>
      </details>
      <Problem error={error} />
    </form>
  );
}
