/** Runs hostile policies, one for each seed that it is sent, and answers what each took and what its meter says. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Fetch } from '../../src/lib/http/outbound-fetch.ts'
import { BadValue } from '../../src/lib/shape/check.ts'
import { Refusal } from '../../src/model/errors.ts'
import { MAX_PRICE } from '../../src/modules/policy/engine/budget.ts'
import { Moment } from '../../src/modules/policy/engine/moment.ts'
import { compile } from '../../src/modules/policy/testing/test-policy.ts'
import { request, response } from '../../src/modules/testing/test-request.ts'
import { seeded } from './hostile-documents.ts'
import { type HostilePolicy, type HostileRequest, hostilePolicy, hostileRequest } from './hostile-policies.ts'

/** How much CPU time a measurement takes at least, in microseconds, and how many there are: the lowest counts. */
const MEASURED_MICROS = 4000
const MEASUREMENTS = 5
/** How much it takes before that, until the code is compiled as in a server that has run for a while. */
const WARM_MICROS = 100_000
/** No more requests are sent than this for one measurement. */
const MAX_REQUESTS = 2000

export interface Ask {
  readonly seed: number
  /** Only these rules and actions of the policy, by their numbers; all when left out. */
  readonly only?: readonly [direction: 'inbound' | 'outbound', rule: number, action: number]
}

export interface Measured {
  readonly seed: number
  /** What one request took, in microseconds of CPU time. */
  readonly micros: number
  readonly steps: number
  readonly isSpent: boolean
  readonly policy: HostilePolicy
}

/** Not accepted: some are too large, or do not fit together. */
export type Answer = Measured | { readonly seed: number; readonly refused: string }

interface Key {
  readonly alg: string
  readonly key: KeyObject
  readonly jwk: object
}

const newKey = (alg: string, namedCurve: string): Key => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve })
  return { alg, key: privateKey, jwk: publicKey.export({ format: 'jwk' }) }
}
const one = [newKey('ES256', 'P-256')]
// A token that does not name its key is tried with several.
const many = Array.from({ length: 20 }, () => newKey('ES512', 'P-521'))

function tokenOf({ alg, key }: Key): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg })}.${part({ iss: 'https://id.example', exp: 4_000_000_000, a: 'b'.repeat(200) })}`
  return `${text}.${sign(alg === 'ES256' ? 'sha256' : 'sha512', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** Answers, ready-made: what it takes to fetch them is not the policy's. */
const keysOf = (keys: readonly Key[]): Buffer => Buffer.from(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }))
const bodies = { one: keysOf(one), many: keysOf(many), other: Buffer.alloc(200_000, 'a') }
const headers = new Headers({ 'content-type': 'application/json' })
const fetch: Fetch = async (url) => {
  const body = String(url).endsWith('/one') ? bodies.one : String(url).endsWith('/many') ? bodies.many : bodies.other
  return { status: 200, headers, body }
}

const tokens = [tokenOf(one[0] as Key), tokenOf(many[0] as Key), tokenOf(many.at(-1) as Key), 'no.token.x']

interface Run {
  readonly steps: number
  readonly isSpent: boolean
}

/** Compiles a policy once; what it returns sends one request and its response through the rules. */
function runner({ inbound, outbound }: HostilePolicy, asked: HostileRequest): () => Promise<Run> {
  const phases = compile({ inbound: [...inbound], outbound: [...outbound] }, { tools: { fetch } })
  const { path, query, body } = asked
  // Rules change copies of it.
  const { headers } = request({ headers: asked.headers })
  const bytes = Buffer.from(body)
  const plain = request({ method: 'POST', path, target: `${path}?${query}`, query })
  return async () => {
    const ctx = { ...plain, headers, bodyLength: bytes.length, slots: new Map(), found: new Map() }
    ctx.readBody = async (maxBytes) => (bytes.length > maxBytes ? 'too_large' : bytes)
    await phases.request?.(ctx)
    await phases.response?.(response(), ctx)
    const moment = [...ctx.slots.values()].find((value) => value instanceof Moment)
    const left = moment?.budget.left ?? MAX_PRICE
    return { steps: MAX_PRICE - left, isSpent: moment?.budget.isSpent ?? false }
  }
}

function reduced(policy: HostilePolicy, only: Ask['only']): HostilePolicy {
  if (!only) return policy
  const [direction, number, action] = only
  const rule = policy[direction][number]
  const found = rule?.actions[action]
  const rules = rule && found ? [...policy[direction].slice(0, 1), { ...rule, actions: [found] }] : []
  return { inbound: policy.inbound.slice(0, 1), outbound: [], [direction]: rules }
}

async function measure(run: () => Promise<Run>, micros = MEASURED_MICROS): Promise<number> {
  const since = process.cpuUsage()
  for (let count = 1; ; count++) {
    await run()
    const { user, system } = process.cpuUsage(since)
    if (user + system > micros || count === MAX_REQUESTS) return (user + system) / count
  }
}

export async function answer({ seed, only }: Ask): Promise<Answer> {
  const random = seeded(seed)
  const policy = reduced(hostilePolicy(random), only)
  const asked = hostileRequest(random, tokens)
  let run: () => Promise<Run>
  try {
    run = runner(policy, asked)
  } catch (error) {
    if (error instanceof BadValue || error instanceof Refusal) return { seed, refused: error.message }
    throw error
  }
  await measure(run, WARM_MICROS)
  const times: number[] = []
  for (let i = 0; i < MEASUREMENTS; i++) times.push(await measure(run))
  return { seed, micros: Math.min(...times), ...(await run()), policy }
}

process.on('message', (ask: Ask) => {
  void answer(ask).then((answered) => process.send?.(answered))
})
