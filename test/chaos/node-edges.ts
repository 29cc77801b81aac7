/** Writes edges through the API of any node, over and over, and remembers what was acknowledged. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../fuzz/hostile-documents.ts'
import type { Answer } from '../support/api-client.ts'
import type { NodesWorld, RestartedNode } from './nodes-world.ts'

/** A group of tunnels, and the backend that leads to it. */
export interface Group {
  /** The address that its services answer with. */
  readonly name: string
  readonly backendId: string
}

/** What is known of an edge: each write that was not acknowledged may have been done or not. */
export interface WrittenEdge {
  readonly host: string
  readonly id: string
  readonly descriptions: ReadonlySet<string>
  /** Where its visitors go; undefined for nowhere. */
  readonly groups: ReadonlySet<string | undefined>
  readonly isThere: 'yes' | 'no' | 'perhaps'
}

/** Between two writes, in milliseconds. */
const BETWEEN_MS = 150

/** So many edges are there at most. */
const MAX_EDGES = 12

interface Edge {
  readonly host: string
  readonly id: string
  routeId: string | undefined
  descriptions: Set<string>
  groups: Set<string | undefined>
  isThere: 'yes' | 'no' | 'perhaps'
}

export class EdgeWriter {
  /** Writes that were acknowledged, and those that were not. */
  readonly figures = { acknowledged: 0, unknown: 0 }
  /** Answers that cannot be, after what was acknowledged before. */
  readonly faults: string[] = []
  readonly #world: NodesWorld
  readonly #groups: readonly Group[]
  readonly #random: Random
  readonly #edges: Edge[] = []
  #running: Promise<void> = Promise.resolve()
  #isResting = true
  #count = 0

  constructor(world: NodesWorld, groups: readonly Group[], random: Random) {
    this.#world = world
    this.#groups = groups
    this.#random = random
  }

  get edges(): readonly WrittenEdge[] {
    return this.#edges
  }

  /** Writes until told to rest. */
  stir(): void {
    this.#isResting = false
    this.#running = this.#write()
  }

  async rest(): Promise<void> {
    this.#isResting = true
    await this.#running
  }

  async #write(): Promise<void> {
    while (!this.#isResting) {
      const open = this.#world.nodes.filter(({ isOpen }) => isOpen)
      const node = open[this.#random(open.length || 1)]
      const there = this.#edges.filter(({ isThere }) => isThere === 'yes')
      const edge = there[this.#random(there.length || 1)]
      if (node) await this.#writeOnce(node, there.length < MAX_EDGES ? edge : (edge ?? there[0]), there.length)
      await pause(BETWEEN_MS)
    }
  }

  async #writeOnce(node: RestartedNode, edge: Edge | undefined, count: number): Promise<void> {
    const turn = this.#random(10)
    if (!edge || (turn < 3 && count < MAX_EDGES)) return this.#create(node)
    if (turn < 5) return this.#describe(node, edge)
    if (turn < 9) return this.#lead(node, edge)
    return this.#remove(node, edge)
  }

  async #create(node: RestartedNode): Promise<void> {
    const host = `edge-${++this.#count}.chaos.test`
    const body = { hostports: [`${host}:443`], description: 'as created' }
    const answer = await this.#send(node, 'POST', '/edges/https', body)
    if (answer?.status !== 201) return
    const id: string = answer.body.id
    const edge: Edge = {
      ...{ host, id, routeId: undefined, isThere: 'yes' },
      ...{ descriptions: new Set(['as created']), groups: new Set([undefined]) },
    }
    this.#edges.push(edge)
    await this.#lead(node, edge)
  }

  async #describe(node: RestartedNode, edge: Edge): Promise<void> {
    const description = `written ${this.figures.acknowledged}`
    const answer = await this.#send(node, 'PATCH', `/edges/https/${edge.id}`, { description })
    this.#isLost(edge, answer)
    if (answer?.status === 200) edge.descriptions = new Set([description])
    else edge.descriptions.add(description)
  }

  /** Leads its visitors to another group. */
  async #lead(node: RestartedNode, edge: Edge): Promise<void> {
    const group = this.#groups[this.#random(this.#groups.length)]
    // After a creation that nobody confirmed there may be a route that has no id here.
    if (!group || (edge.routeId === undefined && edge.groups.size > 1)) return
    const backend = { backend_id: group.backendId }
    const routes = `/edges/https/${edge.id}/routes`
    const answer =
      edge.routeId === undefined
        ? await this.#send(node, 'POST', routes, { match_type: 'path_prefix', match: '/', backend })
        : await this.#send(node, 'PATCH', `${routes}/${edge.routeId}`, { backend })
    this.#isLost(edge, answer)
    if (answer && answer.status < 300) {
      edge.routeId ??= answer.body.id
      edge.groups = new Set([group.name])
    } else edge.groups.add(group.name)
  }

  async #remove(node: RestartedNode, edge: Edge): Promise<void> {
    const answer = await this.#send(node, 'DELETE', `/edges/https/${edge.id}`)
    this.#isLost(edge, answer)
    edge.isThere = answer?.status === 204 ? 'no' : 'perhaps'
  }

  /** An edge that was there a moment ago must not be unknown. */
  #isLost(edge: Edge, answer: Answer | undefined): void {
    if (answer?.status === 404) this.faults.push(`${edge.host} was acknowledged, and is not there: ${answer.text}`)
  }

  /** Undefined when no answer came. */
  async #send(node: RestartedNode, method: string, path: string, body?: unknown): Promise<Answer | undefined> {
    const sending = body === undefined ? {} : { body }
    const answer = await node.running.api.send(method, path, sending).catch(() => undefined)
    const isDone = answer !== undefined && answer.status < 300
    this.figures[isDone ? 'acknowledged' : 'unknown']++
    // A server that cannot write says so with 503; anything else it must be able to answer for.
    if (answer && answer.status >= 400 && ![404, 503].includes(answer.status)) {
      this.faults.push(`${method} ${path} at ${node.name}: ${answer.status} ${answer.text.slice(0, 200)}`)
    }
    return answer
  }
}

/** What can be read at a node other than was acknowledged. */
export async function misread(node: RestartedNode, edges: readonly WrittenEdge[]): Promise<string[]> {
  const faults: string[] = []
  for (const { id, host, descriptions, isThere } of edges) {
    const answer = await node.running.api.send('GET', `/edges/https/${id}`).catch(() => undefined)
    const status = answer?.status ?? 0
    if (isThere === 'perhaps' && status === 404) continue
    const isRight = isThere === 'no' ? status === 404 : status === 200 && descriptions.has(answer?.body.description)
    if (isRight) continue
    faults.push(
      `${host} at ${node.name}: there: ${isThere}, written: ${[...descriptions].join(' or ')}; read: ${status} ${answer?.text.slice(0, 200)}`,
    )
  }
  return faults
}
