/** Addresses that visitors of the nodes request; each responds with its own name and that of the agent. */
import { once } from 'node:events'
import { readAll } from '../support/read-all.ts'
import { answerOf, beginVisit, dialTcp } from '../support/visitor.ts'
import type { RestartedNode } from './nodes-world.ts'

export interface Address {
  /** Only services of this address respond with it. */
  readonly name: string
  /** The same at every node: `https://name` or `tcp://name:port`. */
  readonly url: string
  /** `group`: an edge in front of tunnels with labels. */
  readonly form: 'alone' | 'pooled' | 'group'
}

export interface Heard {
  /** 0 when no response came. */
  readonly status: number
  readonly text: string
}

/** A visitor gives up after this time, in milliseconds: longer than any fault lasts. */
const GIVE_UP_MS = 30_000

/** Sends one request to a node; status 0 means no response. */
export async function ask(node: Pick<RestartedNode, 'running'>, url: string, ca: string): Promise<Heard> {
  const at = node.running.at(url)
  const asking = at.startsWith('tcp:') ? askTcp(at) : askHttp(at, ca)
  try {
    return await asking
  } catch (error) {
    return { status: 0, text: error instanceof Error ? error.message : String(error) }
  }
}

/** The response of a service of an address. */
export function saying(address: string, who: string): string {
  return `${address} by ${who}`
}

export function isFrom({ status, text }: Heard, address: string): boolean {
  return status === 200 && text.startsWith(`${address} by `)
}

async function askHttp(url: string, ca: string): Promise<Heard> {
  const asking = beginVisit(url, { ca })
  const timer = setTimeout(() => asking.destroy(new Error(`no answer within ${GIVE_UP_MS} ms`)), GIVE_UP_MS)
  try {
    return await answerOf(asking)
  } finally {
    clearTimeout(timer)
  }
}

/** The service sends first, then ends the connection. */
async function askTcp(url: string): Promise<Heard> {
  const socket = await dialTcp(url)
  const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${GIVE_UP_MS} ms`)), GIVE_UP_MS)
  try {
    const text = (await readAll(socket)).toString()
    return text === '' ? { status: 0, text: 'closed without a word' } : { status: 200, text }
  } finally {
    clearTimeout(timer)
    socket.destroy()
    if (!socket.closed) await once(socket, 'close')
  }
}
