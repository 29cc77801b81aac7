/** Keeps writing edges through the API of any node, and remembers what was acknowledged. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../fuzz/hostile-documents.ts'
import type { Answer } from '../support/api-client.ts'
import type { NodesWorld, RestartedNode } from './nodes-world.ts'

/** A tunnel group, and the backend that dials it. */
export interface Group {
  /** The address that its services respond with. */
  readonly name: string
  readonly backendId: string
}

/** What is known about an edge: a write that was not acknowledged may or may not have been done. */
export interface WrittenEdge {
  readonly host: string
  readonly id: string
  readonly descriptions: ReadonlySet<string>
  /** Names of the groups that may serve its visitors; undefined for none. */
  readonly groups: ReadonlySet<string | undefined>
  readonly isThere: 'yes' | 'no' | 'perhaps'
}

/** Pause between two writes, in milliseconds. */
const BETWEEN_MS = 150

/** The maximum number of edges. */
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
  /** Numbers of writes that were acknowledged, and that were not. */
  readonly figures = { acknowledged: 0, unknown: 0 }
  /** Responses that contradict what was acknowledged before. */
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

  /** Writes until `rest()`. */
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
    if (turn < 9) return this.#setGroup(node, edge)
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
    await this.#setGroup(node, edge)
  }

  async #describe(node: RestartedNode, edge: Edge): Promise<void> {
    const description = `written ${this.figures.acknowledged}`
    const answer = await this.#send(node, 'PATCH', `/edges/https/${edge.id}`, { description })
    this.#reportIfLost(edge, answer)
    if (answer?.status === 200) edge.descriptions = new Set([description])
    else edge.descriptions.add(description)
  }

  /** Sends the visitors of an edge to another group. */
  async #setGroup(node: RestartedNode, edge: Edge): Promise<void> {
    const group = this.#groups[this.#random(this.#groups.length)]
    // After an unacknowledged creation, there may be a route whose id is unknown here.
    if (!group || (edge.routeId === undefined && edge.groups.size > 1)) return
    const backend = { backend_id: group.backendId }
    const routes = `/edges/https/${edge.id}/routes`
    const answer =
      edge.routeId === undefined
        ? await this.#send(node, 'POST', routes, { match_type: 'path_prefix', match: '/', backend })
        : await this.#send(node, 'PATCH', `${routes}/${edge.routeId}`, { backend })
    this.#reportIfLost(edge, answer)
    if (answer && answer.status < 300) {
      edge.routeId ??= answer.body.id
      edge.groups = new Set([group.name])
    } else edge.groups.add(group.name)
  }

  async #remove(node: RestartedNode, edge: Edge): Promise<void> {
    const answer = await this.#send(node, 'DELETE', `/edges/https/${edge.id}`)
    this.#reportIfLost(edge, answer)
    edge.isThere = answer?.status === 204 ? 'no' : 'perhaps'
  }

  /** Reports an edge that was acknowledged and is gone. */
  #reportIfLost(edge: Edge, answer: Answer | undefined): void {
    if (answer?.status === 404) this.faults.push(`${edge.host} was acknowledged, and is not there: ${answer.text}`)
  }

  /** Undefined when no response came. */
  async #send(node: RestartedNode, method: string, path: string, body?: unknown): Promise<Answer | undefined> {
    const sending = body === undefined ? {} : { body }
    const answer = await node.running.api.send(method, path, sending).catch(() => undefined)
    const isDone = answer !== undefined && answer.status < 300
    this.figures[isDone ? 'acknowledged' : 'unknown']++
    // 503 means that the server cannot write now; any other error is a fault.
    if (answer && answer.status >= 400 && ![404, 503].includes(answer.status)) {
      this.faults.push(`${method} ${path} at ${node.name}: ${answer.status} ${answer.text.slice(0, 200)}`)
    }
    return answer
  }
}

/** What a node returns that differs from what was acknowledged. */
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
