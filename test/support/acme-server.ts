/**
 * A small certificate authority for tests that speaks ACME (RFC 8555): it validates by really connecting to the
 * platform, counts requests, and can be slow, wrong, dead, or in a bad mood.
 */
import { createHash, createHmac, generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { calculateJwkThumbprint, flattenedVerify, importJWK, type JWK } from 'jose'
import { createAuthority } from '../../src/lib/x509/certificate-authority.ts'
import { handshake, plainGet } from './acme-validation.ts'
import { leafIssuer } from './issue-leaf.ts'
import { loadX509 } from './make-certificate.ts'

type Kind = 'http-01' | 'tls-alpn-01' | 'dns-01'

/** The ports at which a node of the platform listens for visitors. */
export interface ListenerPorts {
  readonly httpPort: number
  readonly httpsPort: number
}

/** The kinds of requests, as the server counts them. */
export type AcmeStep =
  | 'account'
  | 'order'
  | 'look'
  | 'authorization'
  | 'challenge'
  | 'finalize'
  | 'download'
  | 'renewalInfo'

export interface AcmeMood {
  /** The probability that a nonce is refused, from 0 to 1. */
  badNonces: number
  offers: readonly Kind[]
  /** How long certificates live, and how old they are when they are issued, in milliseconds. */
  lifeMs: number
  ageMs: number
  /** Says when to renew; if undefined, there is no renewal address. */
  renewalWindow: ((notBefore: number, notAfter: number, name: string) => { start: number; end: number }) | undefined
  /** After how long it wants to be asked again when to renew, in seconds. */
  askAgainS: number
  /** Errors to answer with, each once. */
  readonly problems: { step: AcmeStep; status: number; type: string; name?: string; retryAfter?: number }[]
  /** Called before each step; what it waits for delays the answer. */
  before: (step: AcmeStep, name: string) => Promise<void> | void
  /** Called when a step is done and not yet answered; what it waits for delays the answer. */
  after: ((step: AcmeStep, name: string) => Promise<void> | void) | undefined
  /** Names for which a new order returns the one under way, as at Let's Encrypt. */
  readonly reused: Set<string>
  /** Names whose orders appear in the list of their account, as at pebble: a few on each page. */
  readonly listed: Set<string>
  /** Names that get a certificate for another name, once. */
  readonly lies: Map<string, string>
  /** Names that get a certificate for a wrong key, once. */
  readonly wrongKeys: Set<string>
  /** Names whose orders stay `pending`, whatever is proven. */
  readonly stuck: Set<string>
  /** What to send instead of an answer. */
  readonly instead: Map<AcmeStep, string>
  /** Where validation connects to: each of these nodes must answer. */
  nodes: readonly ListenerPorts[]
  /** The TXT records of a name. */
  txt: (record: string) => Promise<readonly string[]> | readonly string[]
  /** How often an order is still `processing` after it was finalized. */
  processingLooks: number
}

interface Account {
  readonly id: string
  readonly jwk: JWK
  readonly thumbprint: string
}

interface Order {
  readonly id: string
  readonly account: Account
  readonly name: string
  readonly token: string
  replaces: string | undefined
  status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid'
  kind: Kind | undefined
  error: string | undefined
  looks: number
  pem: string | undefined
}

export interface AcmeServer {
  readonly directory: string
  /** The root certificate, in PEM. */
  readonly ca: string
  readonly mood: AcmeMood
  /** How often each step was requested, by name. */
  count(step: AcmeStep, name?: string): number
  /** The orders in sequence: their name, what they replace, and how the name was proven. */
  readonly orders: readonly Pick<Order, 'name' | 'replaces' | 'status' | 'kind'>[]
  readonly accounts: number
  /** Forgets all accounts, like a test authority that was set up again. */
  forgetAccounts(): void
  stop(): Promise<void>
}

export interface AcmeServerOptions {
  /** Serves TLS with this certificate. */
  readonly identity?: { readonly cert: string; readonly key: string }
  /** Accounts must be bound to this key. */
  readonly binding?: { readonly keyId: string; readonly key: string }
}

const DAY_MS = 86_400_000

/** Orders on each page of a list. */
const ON_A_PAGE = 3

export async function startAcmeServer({ identity, binding }: AcmeServerOptions = {}): Promise<AcmeServer> {
  const { certPem, keyPem } = createAuthority()
  const issueLeaf = leafIssuer({ certPem, keyPem })
  const accounts = new Map<string, Account>()
  const orders = new Map<string, Order>()
  const issued = new Map<string, { name: string; notBefore: number; notAfter: number }>()
  const nonces = new Set<string>()
  const counts: { step: AcmeStep; name: string }[] = []
  const mood: AcmeMood = {
    badNonces: 0,
    offers: ['http-01', 'tls-alpn-01', 'dns-01'],
    lifeMs: 90 * DAY_MS,
    ageMs: 0,
    renewalWindow: undefined,
    askAgainS: 60,
    problems: [],
    before: () => {},
    after: undefined,
    reused: new Set(),
    listed: new Set(),
    lies: new Map(),
    wrongKeys: new Set(),
    stuck: new Set(),
    instead: new Map(),
    nodes: [],
    txt: () => [],
    processingLooks: 0,
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    void answer(request, response).catch((error: unknown) => {
      if (error instanceof Problem || error instanceof Instead) error.send(response)
      else response.destroy(error instanceof Error ? error : undefined)
    })
  }
  const server = identity ? createSecureServer(identity, onRequest) : createServer(onRequest)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `${identity ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`

  const nonce = () => {
    const made = randomBytes(16).toString('base64url')
    nonces.add(made)
    return made
  }

  async function step(name: AcmeStep, of: string): Promise<void> {
    counts.push({ step: name, name: of })
    await mood.before(name, of)
    const at = mood.problems.findIndex((each) => each.step === name && (each.name ?? of) === of)
    const [problem] = at === -1 ? [] : mood.problems.splice(at, 1)
    if (problem) throw new Problem(problem.status, problem.type, 'as the test wants it', problem.retryAfter)
    const body = mood.instead.get(name)
    if (body !== undefined) throw new Instead(body)
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('replay-nonce', nonce())
    const { pathname } = new URL(request.url ?? '/', base)
    if (pathname === '/directory') {
      const meta = { externalAccountRequired: binding !== undefined }
      const info = mood.renewalWindow && { renewalInfo: `${base}/renewal` }
      const at = (path: string) => `${base}/${path}`
      return json(response, 200, {
        ...{ newNonce: at('nonce'), newAccount: at('accounts'), newOrder: at('orders'), ...info, meta },
      })
    }
    if (pathname === '/nonce') {
      response.writeHead(200).end()
      return
    }
    if (pathname.startsWith('/renewal/')) return renewal(pathname.slice('/renewal/'.length), response)
    const { account, jwk, payload } = await verified(request, pathname)
    if (pathname === '/accounts') return newAccount(jwk, payload, response)
    if (!account) throw new Problem(400, 'accountDoesNotExist', 'no such account')
    if (pathname.startsWith('/accounts/')) {
      const list = mood.listed.size > 0 && { orders: `${base}/list/0` }
      return json(response, 200, { status: 'valid', ...list })
    }
    if (pathname.startsWith('/list/')) return listOrders(account, Number(pathname.slice('/list/'.length)), response)
    if (pathname === '/orders') return newOrder(account, payload, response)
    const [, what = '', id = ''] = pathname.split('/')
    const order = orders.get(id)
    if (!order || order.account.id !== account.id) throw new Problem(404, 'malformed', 'no such order')
    if (what === 'order') {
      await step('look', order.name)
      if (order.status === 'processing' && order.looks++ >= mood.processingLooks) order.status = 'valid'
      return json(response, 200, shown(order))
    }
    if (what === 'authz') {
      await step('authorization', order.name)
      return json(response, 200, authorization(order))
    }
    if (what === 'challenge') return challenge(order, pathname.split('/')[3] as Kind, response)
    if (what === 'finalize') return finalize(order, payload, response)
    if (what === 'cert') {
      await step('download', order.name)
      response.writeHead(200, { 'content-type': 'application/pem-certificate-chain' }).end(order.pem)
      return
    }
    throw new Problem(404, 'malformed', 'no such address')
  }

  /** Checks the signature, the nonce and the signed address. */
  async function verified(request: IncomingMessage, pathname: string) {
    const jws = JSON.parse((await buffer(request)).toString())
    const head = JSON.parse(Buffer.from(jws.protected, 'base64url').toString())
    if (head.url !== base + pathname) throw new Problem(400, 'unauthorized', 'signed for another address')
    if (!nonces.delete(head.nonce) || Math.random() < mood.badNonces) throw new Problem(400, 'badNonce', 'try again')
    const account = head.kid === undefined ? undefined : accounts.get(String(head.kid).split('/').at(-1) ?? '')
    const jwk: JWK | undefined = account?.jwk ?? head.jwk
    if (!jwk) throw new Problem(400, 'accountDoesNotExist', 'no such account')
    const { payload } = await flattenedVerify(jws, await importJWK(jwk, head.alg)).catch(() => {
      throw new Problem(400, 'malformed', 'the signature is wrong')
    })
    const text = Buffer.from(payload).toString()
    return { account, jwk, payload: text === '' ? {} : JSON.parse(text) }
  }

  // biome-ignore lint/suspicious/noExplicitAny: what a test sends is looked at freely
  async function newAccount(jwk: JWK, payload: any, response: ServerResponse): Promise<void> {
    await step('account', '')
    const thumbprint = await calculateJwkThumbprint(jwk)
    const known = [...accounts.values()].find((each) => each.thumbprint === thumbprint)
    if (!known && binding && !isBound(payload.externalAccountBinding)) {
      throw new Problem(403, 'externalAccountRequired', 'bind the account to a known key')
    }
    const account = known ?? { id: randomBytes(6).toString('hex'), jwk, thumbprint }
    accounts.set(account.id, account)
    response.setHeader('location', `${base}/accounts/${account.id}`)
    json(response, known ? 200 : 201, { status: 'valid' })
  }

  // biome-ignore lint/suspicious/noExplicitAny: the same
  function isBound(jws: any): boolean {
    if (!binding || !jws) return false
    const { alg, kid } = JSON.parse(Buffer.from(jws.protected, 'base64url').toString())
    const mac = createHmac('sha256', Buffer.from(binding.key, 'base64url')).update(`${jws.protected}.${jws.payload}`)
    return alg === 'HS256' && kid === binding.keyId && mac.digest('base64url') === jws.signature
  }

  function listOrders(account: Account, page: number, response: ServerResponse): void {
    const all = [...orders.values()].filter((each) => each.account.id === account.id && mood.listed.has(each.name))
    const some = all.slice(page * ON_A_PAGE, (page + 1) * ON_A_PAGE)
    const next = `<${base}/list/${page + 1}>;rel="next"`
    response.setHeader('link', [
      `<${base}/directory>;rel="index"`,
      ...(all.length > (page + 1) * ON_A_PAGE ? [next] : []),
    ])
    json(response, 200, { orders: some.map(({ id }) => `${base}/order/${id}`) })
  }

  // biome-ignore lint/suspicious/noExplicitAny: the same
  async function newOrder(account: Account, payload: any, response: ServerResponse): Promise<void> {
    const name = String(payload.identifiers[0].value)
    await step('order', name)
    if (payload.replaces !== undefined && !issued.has(payload.replaces)) {
      throw new Problem(404, 'malformed', 'replaces an unknown certificate')
    }
    const id = randomBytes(6).toString('hex')
    const token = randomBytes(24).toString('base64url')
    const { replaces } = payload
    const begun = { kind: undefined, error: undefined, looks: 0, pem: undefined }
    const under = [...orders.values()].find((each) => each.name === name && /pending|ready/.test(each.status))
    const made: Order = { id, account, name, token, replaces, status: 'pending', ...begun }
    const order = (mood.reused.has(name) ? under : undefined) ?? made
    orders.set(order.id, order)
    await mood.after?.('order', name)
    response.setHeader('location', `${base}/order/${order.id}`)
    json(response, 201, shown(order))
  }

  function shown(order: Order) {
    const { id, status, name, error } = order
    return {
      status,
      identifiers: [{ type: 'dns', value: name }],
      authorizations: [`${base}/authz/${id}`],
      finalize: `${base}/finalize/${id}`,
      ...(status === 'valid' && { certificate: `${base}/cert/${id}` }),
      ...(error !== undefined && { error: { type: `${URN}unauthorized`, detail: error } }),
    }
  }

  function authorization({ id, name, status, kind, token, error }: Order) {
    const isWildcard = name.startsWith('*.')
    const offered = mood.offers.filter((each) => !isWildcard || each === 'dns-01')
    return {
      status: status === 'pending' ? 'pending' : status === 'invalid' ? 'invalid' : 'valid',
      identifier: { type: 'dns', value: name.replace(/^\*\./, '') },
      challenges: offered.map((type) => ({
        type,
        url: `${base}/challenge/${id}/${type}`,
        token,
        status: 'pending',
        ...(type === kind && error !== undefined && { error: { type: `${URN}unauthorized`, detail: error } }),
      })),
    }
  }

  async function challenge(order: Order, kind: Kind, response: ServerResponse): Promise<void> {
    await step('challenge', order.name)
    const url = `${base}/challenge/${order.id}/${kind}`
    const answered = () => json(response, 200, { type: kind, status: 'processing', url, token: order.token })
    if (!mood.after) {
      answered()
      return validated(order, kind)
    }
    await validated(order, kind)
    await mood.after('challenge', order.name)
    answered()
  }

  async function validated(order: Order, kind: Kind): Promise<void> {
    if (order.status !== 'pending') return
    order.kind = kind
    if (mood.stuck.has(order.name)) return
    const error = await validate(order, kind).catch((cause: unknown) => `cannot be validated: ${String(cause)}`)
    order.error = error
    order.status = error === undefined ? 'ready' : 'invalid'
  }

  /** Validates a name; resolves with the reason why it is not proven, or with undefined. */
  async function validate({ name, token, account }: Order, kind: Kind): Promise<string | undefined> {
    const expected = `${token}.${account.thumbprint}`
    if (kind === 'dns-01') {
      const found = await mood.txt(`_acme-challenge.${name.replace(/^\*\./, '')}`)
      const digest = createHash('sha256').update(expected).digest('base64url')
      return found.includes(digest) ? undefined : `no such record: ${found.join(' ')}`
    }
    for (const { httpPort, httpsPort } of mood.nodes) {
      if (kind === 'http-01') {
        const path = `/.well-known/acme-challenge/${token}`
        const got = await plainGet(httpPort, name, path)
        if (got !== expected) return `${path} has ${got.slice(0, 80)}`
      } else if (!(await handshake(httpsPort, name, expected))) return 'the certificate of the handshake is wrong'
    }
    return mood.nodes.length === 0 ? 'the test has set no nodes' : undefined
  }

  // biome-ignore lint/suspicious/noExplicitAny: the same
  async function finalize(order: Order, payload: any, response: ServerResponse): Promise<void> {
    await step('finalize', order.name)
    if (order.status !== 'ready') throw new Problem(403, 'orderNotReady', `it is ${order.status}`)
    const x509 = await loadX509()
    const csr = new x509.Pkcs10CertificateRequest(Buffer.from(payload.csr, 'base64url'))
    const hosts = csr.getExtension('2.5.29.17')
    const names = hosts
      ? new x509.SubjectAlternativeNameExtension(hosts.rawData).names.items.map(({ value }) => value)
      : []
    if (!(await csr.verify()) || names.join() !== order.name) throw new Problem(400, 'badCSR', `for ${names.join()}`)
    const lie = mood.lies.get(order.name)
    mood.lies.delete(order.name)
    const key = mood.wrongKeys.delete(order.name)
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'der' })
      : Buffer.from(csr.publicKey.rawData)
    order.pem = issue(lie ?? order.name, key)
    order.status = mood.processingLooks > 0 ? 'processing' : 'valid'
    await mood.after?.('finalize', order.name)
    json(response, 200, shown(order))
  }

  function issue(name: string, publicKey: Buffer): string {
    const notBefore = Math.floor((Date.now() - mood.ageMs) / 1000) * 1000
    const notAfter = notBefore + mood.lifeMs
    const { pem, serialNumber, authorityKeyId } = issueLeaf({ name, publicKey, notBefore, notAfter })
    const positive = (serialNumber[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), serialNumber]) : serialNumber
    issued.set(`${authorityKeyId.toString('base64url')}.${positive.toString('base64url')}`, {
      name,
      notBefore,
      notAfter,
    })
    return pem
  }

  async function renewal(id: string, response: ServerResponse): Promise<void> {
    const life = issued.get(id)
    await step('renewalInfo', life?.name ?? '')
    if (!life || !mood.renewalWindow) throw new Problem(404, 'malformed', 'no such certificate')
    const { start, end } = mood.renewalWindow(life.notBefore, life.notAfter, life.name)
    const at = (ms: number) => new Date(ms).toISOString()
    response.setHeader('retry-after', String(mood.askAgainS))
    json(response, 200, { suggestedWindow: { start: at(start), end: at(end) } })
  }

  return {
    directory: `${base}/directory`,
    ca: certPem,
    mood,
    count: (name, of) => counts.filter((each) => each.step === name && (of === undefined || each.name === of)).length,
    get orders() {
      return [...orders.values()]
    },
    get accounts() {
      return accounts.size
    },
    forgetAccounts: () => accounts.clear(),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const URN = 'urn:ietf:params:acme:error:'

class Problem extends Error {
  readonly #status: number
  readonly #type: string
  readonly #retryAfter: number | undefined

  constructor(status: number, type: string, detail: string, retryAfter?: number) {
    super(detail)
    this.#status = status
    this.#type = type
    this.#retryAfter = retryAfter
  }

  send(response: ServerResponse): void {
    if (this.#retryAfter !== undefined) response.setHeader('retry-after', String(this.#retryAfter))
    response.writeHead(this.#status, { 'content-type': 'application/problem+json' })
    response.end(JSON.stringify({ type: URN + this.#type, detail: this.message, status: this.#status }))
  }
}

/** Sends whatever a test wants instead of the answer. */
class Instead extends Error {
  send(response: ServerResponse): void {
    response.setHeader('location', 'http://127.0.0.1:9/nowhere')
    response.writeHead(200, { 'content-type': 'application/json' }).end(this.message)
  }
}

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
