import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { CallLink } from '../calls/call-link.ts'
import { type Channel, channelPair } from '../calls/plane-channel.ts'
import { ControlLink } from './control-link.ts'
import type { Attachment, ControlCalls, PlaneCalls, PlaneSecrets } from './plane-calls.ts'

const lines: string[] = []
const log = createLog({ level: 'error', format: 'json', destination: { write: (line) => lines.push(line) } })

const secrets: PlaneSecrets = { authority: { cert: 'c', key: 'k' }, sealingKey: new Uint8Array([1]), sshHostKey: 's' }

/** A control plane that records its calls. */
class Control {
  readonly heard: string[] = []
  readonly link: CallLink<PlaneCalls, ControlCalls>
  readonly channel: Channel
  attachment: Attachment | undefined

  constructor(calls: Partial<ControlCalls> = {}) {
    const [ours, theirs] = channelPair()
    this.channel = theirs
    const noted: Partial<ControlCalls> = {
      secrets: () => secrets,
      attach: async () => {},
      requestKey: async () => ({ certificate: 'c', key: 'k' }),
      sessionEnded() {},
      ...calls,
    }
    const wrapped = Object.entries(noted).map(([name, call]) => [
      name,
      (argument: never) => {
        this.heard.push(name)
        if (name === 'attach') this.attachment = argument
        return call(argument)
      },
    ])
    this.link = new CallLink(ours, Object.fromEntries(wrapped) as ControlCalls, { log })
  }
}

const never = () => new Promise<never>(() => {})
let attached = 0
const plane = {
  calls: { storedEdges: () => ['e1'] } as unknown as PlaneCalls,
  attachment: (): Attachment => ({ planeId: 'w1', version: String(++attached), sessions: [], tunnels: [] }),
}

/** Lets all pending work happen. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('the link of a data plane', () => {
  test('attaches when the plane is built, and is called back from then on', async () => {
    const link = new ControlLink({ log })
    const control = new Control()
    const used = link.use(control.channel)
    assert.deepEqual(await link.secrets(), secrets)
    assert.equal(link.isAttached, false)
    await assert.rejects(control.link.ask('storedEdges', null), /does not know/)
    await link.start(plane)
    assert.equal(link.isAttached, true)
    assert.equal(control.attachment?.planeId, 'w1')
    assert.deepEqual(await control.link.ask('storedEdges', null), ['e1'])
    link.close()
    await used
    assert.equal(link.isAttached, false)
    await control.link.closed
  })

  test('waits for its secrets, and asks the next control plane when one goes', async () => {
    const link = new ControlLink({ log })
    const asking = link.secrets()
    const first = new Control({ secrets: never as unknown as () => PlaneSecrets })
    void link.use(first.channel)
    await settled()
    assert.deepEqual(first.heard, ['secrets'])
    first.link.close()
    await settled()
    void link.use(new Control().channel)
    assert.deepEqual(await asking, secrets)
    link.close()
  })

  test('asks for its secrets again when they are late, and gives the error of a control plane that has none', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const link = new ControlLink({ log })
    let asked = 0
    const control = new Control({ secrets: () => (++asked === 1 ? (never() as never) : secrets) })
    void link.use(control.channel)
    const asking = link.secrets()
    await settled()
    t.mock.timers.tick(60_000)
    assert.deepEqual(await asking, secrets)
    const broken = new Control({
      secrets() {
        throw new Error('the key is gone')
      },
    })
    void link.use(broken.channel)
    await assert.rejects(link.secrets(), /the key is gone/)
    link.close()
  })

  test('keeps questions for the next control plane while there is none, and drops what is only told', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    const asking = [link.ask('requestKey', null), link.ask('requestKey', null, { isOnce: true })]
    link.tell('sessionEnded', { sessionId: 'ts_1' })
    await settled()
    const control = new Control()
    void link.use(control.channel)
    for (const each of asking) assert.deepEqual(await each, { certificate: 'c', key: 'k' })
    assert.deepEqual(control.heard, ['attach', 'requestKey', 'requestKey'])
    link.tell('sessionEnded', { sessionId: 'ts_1' })
    await settled()
    assert.equal(control.heard.at(-1), 'sessionEnded')
    control.link.close()
    await settled()
    link.tell('sessionEnded', { sessionId: 'ts_2' })
    const next = new Control()
    void link.use(next.channel)
    await link.ask('requestKey', null)
    assert.deepEqual(next.heard, ['attach', 'requestKey'])
    link.close()
  })

  test('repeats calls that were under way when its control plane went, except those made only once', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    const dying = new Control({ requestKey: never })
    void link.use(dying.channel)
    const repeated = link.ask('requestKey', null)
    const once = link.ask('requestKey', null, { isOnce: true })
    await settled()
    assert.deepEqual(dying.heard, ['attach', 'requestKey', 'requestKey'])
    dying.link.close()
    await assert.rejects(once, { name: 'LinkFault', reason: 'closed' })
    const next = new Control()
    void link.use(next.channel)
    assert.deepEqual(await repeated, { certificate: 'c', key: 'k' })
    assert.deepEqual(next.heard, ['attach', 'requestKey'])
    link.close()
  })

  test('keeps a call made only once when the link is closed already, since it was never sent', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    const gone = new Control()
    void link.use(gone.channel)
    await settled()
    gone.link.close()
    // At the very moment when this end is closed, before the close is reported.
    const closing = gone.link.closed.then(() => link.ask('requestKey', null, { isOnce: true }))
    await settled()
    void link.use(new Control().channel)
    assert.deepEqual(await closing, { certificate: 'c', key: 'k' })
    link.close()
  })

  test('switches to another control plane at once', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    const first = new Control({ requestKey: never })
    const used = link.use(first.channel)
    const asking = link.ask('requestKey', null)
    await settled()
    const second = new Control()
    void link.use(second.channel)
    assert.deepEqual(await asking, { certificate: 'c', key: 'k' })
    await used
    assert.ok(first.link.isClosed)
    assert.equal(link.isAttached, true)
    assert.notEqual(first.attachment?.version, second.attachment?.version)
    link.close()
  })

  test('is not affected when its former control plane closes late', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    for (let i = 0; i < 20; i++) {
      const control = new Control({ attach: i % 2 ? never : async () => {} })
      void link.use(control.channel)
      if (i % 3 === 0) await settled()
    }
    const last = new Control()
    void link.use(last.channel)
    await settled()
    assert.equal(link.isAttached, true)
    assert.deepEqual(await link.ask('requestKey', null), { certificate: 'c', key: 'k' })
    assert.deepEqual(last.heard, ['attach', 'requestKey'])
    link.close()
  })

  test('disconnects from a control plane that refuses it, so that it can try again', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    lines.length = 0
    const refusing = new Control({
      async attach() {
        throw new Error('unknown plane')
      },
    })
    await link.use(refusing.channel)
    assert.equal(link.isAttached, false)
    assert.match(lines.join(''), /unknown plane/)
    void link.use(new Control().channel)
    assert.deepEqual(await link.ask('requestKey', null), { certificate: 'c', key: 'k' })
    link.close()
  })

  test('passes on an error of the control plane without a second try', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    const control = new Control({
      async requestKey() {
        throw new Error('no key')
      },
    })
    void link.use(control.channel)
    await assert.rejects(link.ask('requestKey', null), /no key/)
    assert.deepEqual(control.heard, ['attach', 'requestKey'])
    link.close()
  })

  test('gives up after the time of the call, whether there is a control plane or not', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const link = new ControlLink({ log })
    await link.start(plane)
    const pass = async (ms: number): Promise<void> => {
      now += ms
      t.mock.timers.tick(ms)
      await settled()
    }
    const away = assert.rejects(link.ask('requestKey', null, { withinMs: 100 }), { reason: 'timeout' })
    await pass(100)
    await away
    // One time limit for all tries together.
    const tried = link.ask('requestKey', null, { withinMs: 100 })
    const ended = assert.rejects(tried, { reason: 'timeout' })
    await pass(60)
    const control = new Control({ requestKey: never })
    void link.use(control.channel)
    await settled()
    assert.deepEqual(control.heard, ['attach', 'requestKey'])
    await pass(40)
    await ended
    link.close()
  })

  test('rejects everything once it is closed', async () => {
    const link = new ControlLink({ log })
    const early = link.secrets()
    const waiting = link.ask('requestKey', null)
    link.close()
    await assert.rejects(early, { reason: 'closed' })
    await assert.rejects(waiting, { reason: 'closed' })
    await assert.rejects(link.ask('requestKey', null), { reason: 'closed' })
    await assert.rejects(link.secrets(), { reason: 'closed' })
    link.tell('sessionEnded', { sessionId: 'ts_1' })
    const control = new Control()
    await link.use(control.channel)
    await control.link.closed
    assert.deepEqual(control.heard, [])
  })

  test('rejects what is under way when it is closed', async () => {
    const link = new ControlLink({ log })
    await link.start(plane)
    void link.use(new Control({ requestKey: never }).channel)
    const asking = link.ask('requestKey', null)
    await settled()
    link.close()
    await assert.rejects(asking, { reason: 'closed' })
  })
})
