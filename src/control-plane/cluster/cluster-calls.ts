/** Calls between nodes: to act on a session that only one has, to read exchanges and traffic, and to prove a name. */
import { Refusal } from '../../model/errors.ts'
import { errorOf, isPlainError, plainError } from '../../model/plain-error.ts'
import type { AgentCommand } from '../../model/presence.ts'

/** What a node does for others. Each is harmless for a session that it does not have, or not any more. */
export interface NodeServices {
  command(sessionId: string, command: AgentCommand): Promise<void>
  /** Ends a session whose agent has come back at another node. */
  endSession(sessionId: string): Promise<void>
  /** Asks its agent for a sign of life; resolves when it has given one, or its session is over. */
  proveAlive(sessionId: string): Promise<void>
  /** Tells about its exchanges; see `ExchangeAsk`. */
  exchanges(ask: unknown): Promise<unknown>
  /** Tells how its traffic went in a `Period`. */
  traffic(ask: unknown): Promise<unknown>
  /** Answers a `NameChallenge` from now on; resolves with whether all of its planes do. */
  showChallenge(ask: unknown): Promise<unknown>
}

type CallName = keyof NodeServices

const asks = ['exchanges', 'traffic', 'showChallenge'] as const satisfies CallName[]
const names: readonly string[] = ['command', 'endSession', 'proveAlive'] satisfies Exclude<
  CallName,
  (typeof asks)[number]
>[]
const commands: readonly string[] = ['restart', 'stop', 'update'] satisfies AgentCommand[]

/** Sends a call to another node; rejects when it cannot be reached. */
type CarryCall = (nodeId: string, value: unknown) => Promise<unknown>

/** The services of another node. */
export function servicesOf(nodeId: string, carry: CarryCall): NodeServices {
  const call = async (name: CallName, given: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const answer = await carry(nodeId, { name, ...given })
    if (isFailed(answer)) throw errorOf(answer.error)
    return fieldsOf(answer).value
  }
  const tell = async (...given: Parameters<typeof call>): Promise<void> => void (await call(...given))
  return {
    command: (sessionId, command) => tell('command', { sessionId, command }),
    endSession: (sessionId) => tell('endSession', { sessionId }),
    proveAlive: (sessionId) => tell('proveAlive', { sessionId }),
    exchanges: (ask) => call('exchanges', { ask }),
    traffic: (ask) => call('traffic', { ask }),
    showChallenge: (ask) => call('showChallenge', { ask }),
  }
}

/** Answers a call of another node; never rejects. */
export async function answerCall(services: NodeServices, value: unknown): Promise<object> {
  try {
    return { value: await serve(services, value) }
  } catch (error) {
    return { error: plainError(error) }
  }
}

async function serve(services: NodeServices, value: unknown): Promise<unknown> {
  const { name, sessionId, command, ask } = fieldsOf(value)
  const asked = asks.find((each) => each === name)
  if (asked) return services[asked](ask)
  if (typeof name !== 'string' || !names.includes(name) || typeof sessionId !== 'string') {
    // A newer version may ask for more than this one knows.
    throw new Refusal(
      'INTERNAL',
      'the node of the session does not know this call; upgrade it to the version of the other nodes',
    )
  }
  if (name === 'endSession') return services.endSession(sessionId)
  if (name === 'proveAlive') return services.proveAlive(sessionId)
  if (!isCommand(command))
    throw new Refusal(
      'INTERNAL',
      'the node of the session does not know this command; upgrade it to the version of the other nodes',
    )
  return services.command(sessionId, command)
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function isCommand(value: unknown): value is AgentCommand {
  return typeof value === 'string' && commands.includes(value)
}

function isFailed(answer: unknown): answer is { readonly error: Parameters<typeof errorOf>[0] } {
  return typeof answer === 'object' && answer !== null && 'error' in answer && isPlainError(answer.error)
}
