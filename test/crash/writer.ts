/** One API client that creates, changes and deletes edges of its own until it is stopped or its server is killed. */
import assert from 'node:assert/strict'
import type { Answer, ApiClient } from '../support/api-client.ts'
import type { EdgeState, Memory } from './memory.ts'

export interface Tally {
  acknowledged: number
  /** Sent, and cut off before the answer. */
  unanswered: number
  /** Answered with 503, since the database was down. */
  refused: number
}

export interface Writing {
  readonly api: ApiClient
  readonly memory: Memory
  /** Existing IP policies that edges may refer to. */
  readonly policies: readonly string[]
  readonly tally: Tally
  readonly signal: AbortSignal
}

/** Most edges that a writer keeps, so that comparing stays quick. */
const MAX_EDGES = 12

/** Writes until it is stopped, or until a write is refused or gets no answer. */
export async function write({ api, memory, policies, tally, signal }: Writing): Promise<void> {
  while (!signal.aborted) {
    const { id, state, send } = choose(memory, policies)
    memory.tries({ id, state })
    let answer: Answer
    try {
      answer = await send(api)
    } catch {
      tally.unanswered++
      return
    }
    if (answer.status === 503) {
      tally.refused++
      return
    }
    assert.ok(answer.status < 300, `${answer.status} for a write that must succeed: ${answer.text}`)
    memory.acknowledged(id ?? answer.body.id)
    tally.acknowledged++
  }
}

interface Choice {
  readonly id: string | null
  readonly state: EdgeState | null
  readonly send: (api: ApiClient) => Promise<Answer>
}

function choose(memory: Memory, policies: readonly string[]): Choice {
  const { edges } = memory
  const [id, before] = edges[Math.floor(Math.random() * edges.length)] ?? []
  if (!id || !before || (Math.random() < 0.3 && edges.length < MAX_EDGES)) return create(memory, policies)
  const path = `/edges/tcp/${id}`
  const kind = Math.random()
  if (kind < 0.4) {
    const change = { description: memory.fresh(), metadata: memory.fresh() }
    return { id, state: { ...before, ...change }, send: (api) => api.send('PATCH', path, { body: change }) }
  }
  if (kind < 0.7) {
    const chosen = some(policies)
    const body = { ip_policy_ids: chosen }
    const state = { ...before, policies: chosen }
    return { id, state, send: (api) => api.send('PUT', `${path}/ip_restriction`, { body }) }
  }
  if (kind < 0.8) {
    return { id, state: { ...before, policies: null }, send: (api) => api.send('DELETE', `${path}/ip_restriction`) }
  }
  return { id, state: null, send: (api) => api.send('DELETE', path) }
}

function create(memory: Memory, policies: readonly string[]): Choice {
  const state = { description: memory.fresh(), metadata: 'x'.repeat(1000), policies: some(policies) }
  const { policies: ip_policy_ids, ...fields } = state
  const body = { ...fields, ip_restriction: { ip_policy_ids } }
  return { id: null, state, send: (api) => api.send('POST', '/edges/tcp', { body }) }
}

/** One or more of `all`. */
function some(all: readonly string[]): string[] {
  return all.slice(Math.floor(Math.random() * all.length))
}
