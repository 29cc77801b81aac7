/** Asks a data plane of another node which places it serves, over a connection of its own: its control process may stand still. */
import { LinkFault } from '../../model/link-fault.ts'
import { answerPings } from '../wire/heartbeat.ts'
import { streamTypes } from '../wire/stream-types.ts'
import { connectNode } from './connect-node.ts'
import { callNode, PLANE_CALL_TYPE } from './node-calls.ts'
import { AnotherNode, type NodeIdentity } from './node-identity.ts'
import type { OtherNode } from './plane-calls.ts'
import { relaySession } from './relay-session.ts'

/** A tunnel that has, or had, a place. */
export interface AddressHolder {
  readonly place: string
  readonly tunnelId: string
  readonly sessionId: string
}

/**
 * What a node says when it is asked: which of the places it still serves. `refused`: it is not there any more. `unclear`: it is
 * there and does not say, as a node of an older version. `silent`: it does not answer, and may still be there.
 */
export type ServedAnswer = readonly boolean[] | 'refused' | 'unclear' | 'silent'

interface AskNodeOptions {
  readonly identity: Pick<NodeIdentity, 'linkTls'>
  readonly node: Pick<OtherNode, 'nodeId' | 'address'>
  readonly holders: readonly AddressHolder[]
  /** How long it may take to answer, in milliseconds. */
  readonly withinMs: number
}

/** Most holders in one question. */
export const MAX_ASKED = 500

/** Never rejects. */
export async function askNode({ identity, node, holders, withinMs }: AskNodeOptions): Promise<ServedAnswer> {
  const { nodeId, address } = node
  const deadline = performance.now() + withinMs
  try {
    const { signal } = new AbortController()
    const { socket } = await connectNode({ identity, nodeId, address, withinMs, signal })
    const session = relaySession(socket, {
      opens: true,
      isFar: true,
      onStream: (stream, type) => (type === streamTypes.heartbeat ? answerPings(stream) : stream.reset()),
      onClosed() {},
    })
    try {
      const leftMs = Math.max(1, deadline - performance.now())
      return readAnswer(await callNode(session, { serves: holders }, leftMs, PLANE_CALL_TYPE), holders.length)
    } catch (error) {
      // It refused the question, and the connection lives: it is there.
      const isThere = error instanceof LinkFault && error.reason !== 'timeout' && !session.isClosed
      return isThere ? 'unclear' : 'silent'
    } finally {
      session.close()
    }
  } catch (error) {
    // A node has another id after each start, so the one that is asked for has ended where another answers.
    const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
    return isRefused || error instanceof AnotherNode ? 'refused' : 'silent'
  }
}

function readAnswer(answer: unknown, count: number): ServedAnswer {
  if (!Array.isArray(answer) || answer.length !== count) return 'unclear'
  const all: readonly unknown[] = answer
  return all.every((each) => typeof each === 'boolean') ? all : 'unclear'
}

/** Reads the question; undefined when it is another. */
export function readAsked(value: unknown): readonly AddressHolder[] | undefined {
  if (typeof value !== 'object' || value === null || !('serves' in value) || !Array.isArray(value.serves))
    return undefined
  const all: readonly unknown[] = value.serves
  return all.length <= MAX_ASKED && all.every(isHolder) ? all : undefined
}

function isHolder(value: unknown): value is AddressHolder {
  if (typeof value !== 'object' || value === null) return false
  const { place, tunnelId, sessionId } = value as Readonly<Record<string, unknown>>
  return [place, tunnelId, sessionId].every((each) => typeof each === 'string')
}
