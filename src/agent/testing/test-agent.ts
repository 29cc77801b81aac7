/** For tests: an agent with its own clock, and ways to wait for its events. */
import { Secret } from '../../lib/secrets/secret.ts'
import { Agent, type AgentOptions } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import type { AgentTunnelPlan } from '../tunnel.ts'
import { TestTimers } from './test-timers.ts'

export function testAgent(options: Partial<AgentOptions> & Pick<AgentOptions, 'server' | 'ca'>) {
  const timers = new TestTimers()
  const events: AgentEvent[] = []
  let wake = Promise.withResolvers<void>()
  const agent = new Agent({
    authtoken: new Secret('token'),
    version: '1.2.3',
    timers,
    random: () => 0.5,
    addresses: () => '10.0.0.1',
    onEvent(event) {
      events.push(event)
      wake.resolve()
      wake = Promise.withResolvers()
    },
    ...options,
  })
  let seen = 0
  /** The next event of this type that has not been returned before. */
  const nextEvent = async <T extends AgentEvent['type']>(type: T): Promise<Extract<AgentEvent, { type: T }>> => {
    for (;;) {
      for (; seen < events.length; seen++) {
        const event = events[seen]
        if (event?.type !== type) continue
        seen++
        return event as Extract<AgentEvent, { type: T }> // just compared
      }
      await wake.promise
    }
  }
  return { agent, timers, events, nextEvent }
}

/** A web tunnel that answers visitors with `served`. */
export function testPlan(given: Partial<AgentTunnelPlan> = {}): AgentTunnelPlan {
  return {
    name: 'web',
    asks: { proto: 'https', opts: {} },
    forwardsTo: 'http://localhost:3000',
    forwardsProto: '',
    metadata: '',
    target: { accept: (connection) => void connection.end('served') },
    ...given,
  }
}

export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}

export async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer) // no encoding is set
  return Buffer.concat(chunks).toString()
}
