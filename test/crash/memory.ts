/** What one writer knows about its edges: the state each must have, or both possible ones during a write. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../support/api-client.ts'

/** The part of an edge that writers change. */
export interface EdgeState {
  readonly description: string
  readonly metadata: string
  /** Ids of the policies of its `ip_restriction`; null when that is not set. */
  readonly policies: readonly string[] | null
}

interface Attempt {
  /** Null for an edge that is being created. */
  readonly id: string | null
  /** Null for a deletion. */
  readonly state: EdgeState | null
}

export class Memory {
  readonly #name: string
  readonly #edges = new Map<string, EdgeState>()
  #attempt: Attempt | null = null
  #writes = 0

  constructor(name: string) {
    this.#name = name
  }

  get size(): number {
    return this.#edges.size
  }

  get edges(): readonly [id: string, state: EdgeState][] {
    return [...this.#edges]
  }

  /** A text that no other write has used. */
  fresh(): string {
    return `${this.#name}, write ${++this.#writes}`
  }

  /** Notes a write that is about to be sent; until it is acknowledged, the old and the new state are both right. */
  tries(attempt: Attempt): void {
    this.#attempt = attempt
  }

  /** Notes that the write was acknowledged; from now on only the new state is right. */
  acknowledged(id: string): void {
    assert.ok(this.#attempt)
    const { state } = this.#attempt
    if (state) this.#edges.set(id, state)
    else this.#edges.delete(id)
    this.#attempt = null
  }

  /** Removes this writer's edges from `found`; each must have its expected state. */
  settle(found: Map<string, Json>): void {
    const attempt = this.#attempt
    this.#attempt = null
    for (const [id, expected] of this.edges) {
      const edge = found.get(id)
      const actual = edge === undefined ? null : stateOf(edge)
      found.delete(id)
      if (attempt?.id === id && isDeepStrictEqual(actual, attempt.state)) {
        if (actual) this.#edges.set(id, actual)
        else this.#edges.delete(id)
      } else assert.deepEqual(actual, expected, `${id} differs from what was acknowledged`)
    }
    if (attempt?.id === null) this.#adopt(found, attempt)
  }

  /** The edge that was being created may exist, but only as a whole. */
  #adopt(found: Map<string, Json>, { state }: Attempt): void {
    for (const [id, edge] of found) {
      if (edge.description !== state?.description) continue
      assert.deepEqual(stateOf(edge), state)
      this.#edges.set(id, stateOf(edge))
      found.delete(id)
    }
  }
}

export function stateOf(edge: Json): EdgeState {
  const { description, metadata, ip_restriction } = edge
  return { description, metadata, policies: ip_restriction?.ip_policies.map(({ id }: { id: string }) => id) ?? null }
}
