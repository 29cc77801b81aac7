/** Sends many random calls to a platform, and checks every answer and the stored state against invariants. */
import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { MAX_BODY_BYTES } from '../../src/control-plane/api/body.ts'
import { errors } from '../../src/model/errors.ts'
import type { Json } from '../support/api-client.ts'
import type { Platform } from '../support/platform.ts'
import { type Operation, readDocument } from './document.ts'
import { type Plan, plans } from './plan.ts'
import { Pool } from './pool.ts'
import { type Received, type Sent, Wire } from './wire.ts'

const CONNECTIONS = 16
/** The only call that answers with a resource but stores nothing. */
const DRY_RUN = '/policy/explain'

/** An operation whose answer continues until the caller leaves. */
const ENDLESS = '/exchanges/stream'

/** Plans are drawn in batches, each from its own seed, so that a long run does not hold them all in memory. */
const BATCH = 250

export interface Tally {
  calls: number
  readonly statuses: Map<number, number>
  /** How often each operation succeeded. */
  readonly succeeded: Map<string, number>
  /** The longest time that the event loop, which the server shares, was blocked. */
  longestMs: number
}

export interface Portion {
  readonly calls: number
  /** One call at a time, comparing what is stored before and after each. */
  readonly serial: boolean
  /** The operations to call; all if omitted. */
  readonly of?: readonly Operation[]
}

export class Fuzz {
  readonly tally: Tally = { calls: 0, statuses: new Map(), succeeded: new Map(), longestMs: 0 }
  readonly operations: readonly Operation[]
  /** Operations that are called: not an enforced IP restriction, which would lock us out, and no endless answer. */
  readonly called: readonly Operation[]
  readonly #platform: Platform
  readonly #tokens: Readonly<Record<Plan['as'], string>>
  readonly #wire: Wire
  readonly #pool = new Pool()
  readonly #seed: number
  #batch = 0

  private constructor(platform: Platform, member: string, operations: readonly Operation[], seed: number) {
    this.#platform = platform
    this.#tokens = { admin: platform.apiKey, member, nobody: '', stranger: 'x'.repeat(55) }
    this.operations = operations
    this.called = operations.filter(({ path }) => !path.startsWith('/ip_restrictions') && path !== ENDLESS)
    this.#wire = new Wire(platform.url, CONNECTIONS)
    this.#seed = seed
  }

  static async start(platform: Platform, seed: number): Promise<Fuzz> {
    const member = await platform.member()
    return new Fuzz(platform, member.token, await readDocument(platform.url), seed)
  }

  /** Operations that should create something and never did; without visitors, there are no exchanges to replay. */
  get barren(): readonly Operation[] {
    return this.called.filter(
      ({ path, status, name }) => status === 201 && !path.startsWith('/exchanges') && !this.tally.succeeded.has(name),
    )
  }

  async run({ calls, serial, of = this.called }: Portion): Promise<void> {
    const drawn = plans(of)
    const delay = monitorEventLoopDelay({ resolution: 10 })
    delay.enable()
    for (let left = calls; left > 0; left -= BATCH) {
      const batch = fc.sample(drawn, { seed: this.#seed + this.#batch++, numRuns: Math.min(left, BATCH) })
      const next = batch.values()
      const worker = async () => {
        for (const plan of next) await (serial ? this.#watched(plan) : this.#call(plan))
      }
      await Promise.all(Array.from({ length: serial ? 1 : CONNECTIONS }, worker))
    }
    delay.disable()
    this.tally.longestMs = Math.max(this.tally.longestMs, Math.round(delay.max / 1e6))
  }

  close(): void {
    this.#wire.close()
  }

  /** Checks that every listed item can be fetched and is the same there, with its modules. Returns their number. */
  async takeStock(): Promise<number> {
    let count = 0
    for (const { path, listed } of this.operations) {
      if (!listed) continue
      let next: string | null = `${this.#platform.url}${path}?limit=37`
      while (next !== null) {
        const page: Json = await this.#read(next)
        const items: Json[] = Object.values(page).find(Array.isArray) ?? []
        const isInOrder = items.every(({ id }, i) => i === 0 || id < items[i - 1].id)
        assert.ok(isInOrder, `${next} is out of order`)
        for (const item of items) count += await this.#fetchAll(item)
        next = page.next_page_uri
      }
    }
    return count
  }

  async #fetchAll(item: Json): Promise<number> {
    const read = await this.#read(item.uri)
    assert.deepEqual(lasting(read), lasting(item), `${item.uri} differs from what its list shows`)
    let count = 1
    for (const route of item.routes ?? []) count += await this.#fetchAll(route)
    for (const { path, method, prefixes } of this.operations) {
      const module = /\{id\}\/(\w+)$/.exec(path)?.[1] ?? ''
      if (method !== 'GET' || !item.id.startsWith(prefixes.id) || !item[module]) continue
      assert.deepEqual(await this.#read(`${item.uri}/${module}`), item[module], `${item.uri}/${module}`)
    }
    return count
  }

  async #read(uri: string): Promise<Json> {
    const { status, body } = await this.#get(new URL(uri).pathname + new URL(uri).search)
    assert.equal(status, 200, uri)
    return body
  }

  #get(path: string): Promise<Received> {
    return this.#wire.send({ method: 'GET', path, headers: this.#headers('admin'), body: undefined })
  }

  #headers(as: Plan['as']): Record<string, string> {
    const token = this.#tokens[as]
    return { 'service-version': '2', ...(token !== '' && { authorization: `Bearer ${token}` }) }
  }

  /** Sends one call; any error includes what was sent. */
  async #call(plan: Plan, path = this.#pool.fillPath(plan.path)): Promise<Received | undefined> {
    const { method, as, operation } = plan
    const body = typeof plan.body === 'string' ? this.#pool.fill(plan.body) : plan.body
    const sent = { method, path, headers: { ...this.#headers(as), ...plan.headers }, body }
    try {
      const received = await this.#wire.send(sent)
      this.#check(operation, sent, received)
      return received
    } catch (error) {
      // A server may close the connection while a body over the limit is still being sent.
      if (Buffer.byteLength(body ?? '') > MAX_BODY_BYTES && !(error instanceof assert.AssertionError)) return undefined
      throw new Error(`${as}: ${method} ${path} ${brief(body)} ${JSON.stringify(plan.headers)}`, { cause: error })
    } finally {
      this.tally.calls++
    }
  }

  #check({ path: template, name }: Operation, { method, path }: Sent, { status, text, body, headers }: Received): void {
    this.tally.statuses.set(status, (this.tally.statuses.get(status) ?? 0) + 1)
    assert.ok(status < 500, `${status} ${text}`)
    if (method === 'HEAD') {
      assert.equal(text, '')
      return
    }
    if (status >= 300) {
      assertRefusal({ status, text, body, headers })
      return
    }
    const isPreflight = method === 'OPTIONS' && status === 204
    const operation = this.operations.find((each) => each.path === template && each.method === method)
    const isBent = !fits(template, path)
    if (isPreflight || (isBent && !operation)) return
    assert.ok(operation, `${method} is not an operation of ${template}, but got ${status}`)
    if (isBent) return
    assert.equal(status, operation.status)
    if (operation.answer) {
      const isFine = operation.answer(body)
      assert.ok(isFine, `${JSON.stringify(operation.answer.errors)} in ${text.slice(0, 2000)}`)
    } else assert.equal(text, '')
    if (operation.name === name) this.tally.succeeded.set(name, (this.tally.succeeded.get(name) ?? 0) + 1)
    if (status === 201) this.#pool.add(body)
    if (method === 'DELETE' && template.endsWith('{id}')) this.#pool.remove(path.split('/').at(-1) ?? '')
  }

  /** Sends a call while no other runs: a refused one must change nothing, and an accepted one must be readable. */
  async #watched(plan: Plan): Promise<void> {
    const path = this.#pool.fillPath(plan.path)
    const before = await this.#look(path)
    const received = await this.#call(plan, path)
    const after = await this.#look(path)
    const what = `${plan.method} ${path} ${brief(plan.body)} ${received?.status} ${received?.text}`
    const isRead = plan.method === 'GET' || plan.method === 'HEAD'
    if (!received || received.status >= 300 || isRead) {
      assert.ok(
        isDeepStrictEqual(after, before),
        `${what} changed ${JSON.stringify(before)} to ${JSON.stringify(after)}`,
      )
      return
    }
    const { body, status } = received
    // A field that can be cleared has no GET.
    if (plan.method === 'DELETE') assert.ok([404, 405].includes((await this.#get(path)).status), what)
    else if (status === 201) {
      const { body: stored } = await this.#get(new URL(body.uri).pathname)
      assert.deepEqual(stored, { ...body, ...(Object.hasOwn(body, 'token') && { token: null }) }, what)
    } else if (status === 200 && path !== DRY_RUN) assert.deepEqual((await this.#get(path)).body, body, what)
  }

  /** The resource at a path, or the newest of a list. */
  async #look(path: string): Promise<Json> {
    const plain = path.split('?')[0] ?? ''
    const one = /^\/.*\/[a-z]+_[0-9A-Za-z]{27}(?![0-9A-Za-z])/.exec(plain)?.[0]
    if (one !== undefined) return lasting((await this.#get(one)).body)
    if (this.operations.some(({ path, listed }) => listed && path === plain)) {
      return lasting((await this.#get(`${plain}?limit=1`)).body)
    }
    return undefined
  }
}

function assertRefusal({ status, text, body }: Received): void {
  const code = String(body?.error_code)
  const name = code.replace(/^ERR_/, '')
  const entry = Object.entries(errors).find(([each]) => each === name)?.[1]
  assert.ok(entry && code.startsWith('ERR_'), `no error of the table: ${status} ${text}`)
  assert.equal(entry.status, status)
  assert.deepEqual(Object.keys(body).sort(), ['details', 'error_code', 'msg', 'status_code'])
  assert.equal(body.status_code, status)
  assert.ok(typeof body.msg === 'string' && body.msg.length > 5 && body.msg.length < 1000, `msg: ${body.msg}`)
  assert.match(body.details.operation_id, /^op_[0-9A-Za-z]{27}$/)
}

/** Whether a path without its query has the plain form of a template. */
function fits(template: string, path: string): boolean {
  const [given = ''] = path.split('?')
  return RegExp(`^${template.replaceAll(/\{\w+\}/g, '[a-z]+_[0-9A-Za-z]{27}')}$`).test(given)
}

/** The part of an answer that stays the same: without the operation id of a refusal, and the seconds of a lease. */
function lasting(body: Json): Json {
  if (body?.details) return { ...body, details: undefined }
  if (Array.isArray(body?.nodes)) return { ...body, nodes: body.nodes.map(lasting) }
  return typeof body?.lease === 'number' ? { ...body, lease: undefined } : body
}

function brief(body: string | Buffer | undefined): string {
  const text = String(body ?? '')
  return text.length > 2000 ? `${text.slice(0, 1000)}... (${text.length} characters)` : text
}
