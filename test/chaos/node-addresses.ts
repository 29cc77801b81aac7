/** Addresses that visitors of the nodes ask for, and what each answers: its own name, and who said it. */
import { once } from 'node:events'
import { readAll } from '../support/read-all.ts'
import { answerOf, beginVisit, dialTcp } from '../support/visitor.ts'
import type { RestartedNode } from './nodes-world.ts'

export interface Address {
  /** What its services answer with, and nobody else's. */
  readonly name: string
  /** As at any node: `https://name` or `tcp://name:port`. */
  readonly url: string
  /** `group`: an edge in front of tunnels with labels. */
  readonly form: 'alone' | 'pooled' | 'group'
}

export interface Heard {
  /** 0 where no answer came. */
  readonly status: number
  readonly text: string
}

/** A visitor gives up after this time, in milliseconds: longer than any fault lasts. */
const GIVE_UP_MS = 30_000

/** Asks once at a node; an answer that did not come has the status 0. */
export async function ask(node: Pick<RestartedNode, 'running'>, url: string, ca: string): Promise<Heard> {
  const at = node.running.at(url)
  const asking = at.startsWith('tcp:') ? askTcp(at) : askHttp(at, ca)
  try {
    return await asking
  } catch (error) {
    return { status: 0, text: error instanceof Error ? error.message : String(error) }
  }
}

/** What a service of an address says. */
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

/** The service speaks first and ends. */
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
