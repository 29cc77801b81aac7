import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeldSockets, type HeldSocketsOptions, type Loan, type SocketName } from './held-sockets.ts'

interface FakeSocket {
  readonly number: number
  readonly address: { readonly address: string; readonly family: string; readonly port: number }
  readonly isSpread: boolean
  isOpen: boolean
  close(): void
}

/** A fake system that assigns ports from 1000 on. */
function held(given: Partial<HeldSocketsOptions<FakeSocket>> & { refuse?: (isSpread: boolean) => string } = {}) {
  const opened: FakeSocket[] = []
  const { refuse = () => '', ...options } = given
  const sockets = new HeldSockets<FakeSocket>({
    isSpread: true,
    open: async ({ port }, { isSpread }) => {
      const code = refuse(isSpread)
      if (code) throw Object.assign(new Error(code), { code })
      const socket = fake(opened.length, port || 1000 + opened.length, isSpread)
      opened.push(socket)
      return socket
    },
    ...options,
  })
  return { sockets, open: () => opened.filter(({ isOpen }) => isOpen), opened }
}

function fake(number: number, port: number, isSpread: boolean): FakeSocket {
  const address = { address: '127.0.0.1', family: 'IPv4', port }
  const close = (): void => {
    socket.isOpen = false
  }
  const socket: FakeSocket = { number, address, isSpread, isOpen: true, close }
  return socket
}

const shown = (loans: readonly Loan<FakeSocket>[]) => loans.map(({ name, slot, to }) => `${name} of ${slot}: ${to}`)
const port: SocketName = 'tcp 20001'
const placeOf = (name: SocketName) => ({ host: '127.0.0.1', port: Number(name.split(' ')[1] ?? 0) })

test('each slot has its own socket, at the port that the system chose for the first', async () => {
  const { sockets, open } = held()
  const [a, b] = await Promise.all([
    sockets.take('https', 0, 'w1', placeOf('https')),
    sockets.take('https', 1, 'w2', placeOf('https')),
  ])
  assert.notEqual(a, b)
  assert.equal(a.address.port, b.address.port)
  assert.ok(open().length === 2 && open().every(({ isSpread }) => isSpread))
  assert.equal(await sockets.take('https', 1, 'w2', placeOf('https')), b)
})

test('the port that the system chooses is known before any worker has the socket', async () => {
  const { sockets, open } = held()
  const chosen = await sockets.portAt('cluster', placeOf('cluster'))
  const { address } = await sockets.take('cluster', 0, 'w1', placeOf('cluster'))
  assert.equal(address.port, chosen)
  assert.equal(open().length, 1)
  assert.equal(await sockets.portAt('cluster', placeOf('cluster')), chosen)
  sockets.giveUp('cluster', 'w1')
  assert.equal(open().length, 0, 'reading a port does not hold it')
})

test('a configured port is tried alone first, so that another program there is noticed', async () => {
  const { sockets } = held({ refuse: (isSpread) => (isSpread ? '' : 'EADDRINUSE') })
  await assert.rejects(sockets.take(port, 0, 'w1', placeOf(port)), { code: 'EADDRINUSE' })
  assert.equal(sockets.size, 0)
  const { sockets: free, opened, open } = held()
  await free.take(port, 0, 'w1', placeOf(port))
  await free.take(port, 1, 'w2', placeOf(port))
  assert.deepEqual(
    opened.map(({ isSpread }) => isSpread),
    [false, true, true],
  )
  assert.equal(open().length, 2)
})

test('all slots share one socket where the system cannot spread connections or it is not wanted', async () => {
  for (const given of [{ refuse: (isSpread: boolean) => (isSpread ? 'ENOTSUP' : '') }, { isSpread: false }]) {
    const { sockets, open } = held(given)
    assert.equal(await sockets.take('api', 0, 'w1', placeOf('api')), await sockets.take('api', 1, 'w2', placeOf('api')))
    sockets.giveUp('api', 'w1')
    assert.equal(open().length, 1)
    sockets.giveUp('api', 'w2')
    assert.equal(open().length, 0)
  }
})

test('a socket that its holders gave up is closed, and opens again when it is needed', async () => {
  const { sockets, open } = held()
  await sockets.take(port, 0, 'w1', placeOf(port))
  await sockets.take(port, 0, 'w9', placeOf(port))
  sockets.giveUp(port, 'w1')
  assert.equal(open().length, 1, 'the next generation still has it')
  sockets.giveUp(port, 'w9')
  assert.deepEqual([open().length, sockets.size], [0, 0])
  await sockets.take(port, 0, 'w1', placeOf(port))
  assert.equal(open().length, 1)
})

test('a handed-in socket is shared, stays open, and can be taken again', async () => {
  const handed = fake(9, 20001, false)
  const { sockets, opened } = held({ handed: new Map([[port, handed]]) })
  for (const round of [1, 2]) {
    for (const [slot, id] of [`w${round}`, `v${round}`].entries()) {
      assert.equal(await sockets.take(port, slot, id, placeOf(port)), handed)
      sockets.giveUp(port, id)
    }
    assert.ok(handed.isOpen)
  }
  assert.equal(opened.length, 0)
  sockets.close()
  assert.equal(handed.isOpen, false)
})

describe('a worker that died', () => {
  async function two(names: readonly SocketName[] = ['https', port]) {
    const all = held()
    for (const name of names) {
      for (const [slot, id] of ['w1', 'w2'].entries()) await all.sockets.take(name, slot, id, placeOf(name))
    }
    return all
  }

  test('leaves its sockets, which another worker serves until the replacement is ready', async () => {
    const { sockets, open } = await two()
    const [, own] = [open(), open()[1]]
    sockets.died('w2')
    assert.deepEqual(shown(sockets.lend(['w1'])), ['https of 1: w1', 'tcp 20001 of 1: w1'])
    assert.deepEqual(sockets.lend(['w1']), [], 'once')
    assert.equal(open().length, 4)
    assert.equal(await sockets.take('https', 1, 'w3', placeOf('https')), own)
    assert.ok(sockets.isServed('https', 1, 'w3'))
    await sockets.take(port, 1, 'w3', placeOf(port))
    assert.deepEqual(shown(sockets.settle(1)), ['https of 1: w1', 'tcp 20001 of 1: w1'])
    assert.ok(!sockets.isServed('https', 1, 'w3'))
    assert.equal(open().length, 4)
  })

  test('leaves a port that nobody needs any more to be closed when the replacement is ready', async () => {
    const { sockets, open } = await two([port])
    sockets.died('w2')
    sockets.lend(['w1'])
    assert.deepEqual(shown(sockets.settle(1)), ['tcp 20001 of 1: w1'])
    assert.equal(open().length, 1)
  })

  test('leaves a port that is closed together with the last served socket of its name', async () => {
    const { sockets, open } = await two([port])
    sockets.died('w2')
    sockets.lend(['w1'])
    sockets.giveUp(port, 'w1')
    assert.deepEqual([open().length, sockets.size], [0, 0])
  })

  test('as the only worker leaves sockets that wait', async () => {
    const { sockets, open } = held()
    await sockets.take('https', 0, 'w1', placeOf('https'))
    sockets.died('w1')
    assert.deepEqual(sockets.lend([]), [])
    assert.equal(open().length, 1)
    await sockets.take('https', 0, 'w2', placeOf('https'))
    assert.deepEqual(sockets.settle(0), [])
    assert.equal(open().length, 1)
  })

  test('while it served the sockets of another leaves both to a third', async () => {
    const { sockets } = held()
    for (const [slot, id] of ['w1', 'w2', 'w3'].entries()) await sockets.take('https', slot, id, placeOf('https'))
    sockets.died('w3')
    const [first] = sockets.lend(['w1', 'w2'])
    assert.ok(first)
    sockets.died(first.to)
    const left = first.to === 'w1' ? 'w2' : 'w1'
    assert.deepEqual(
      sockets.lend([left]).map(({ to }) => to),
      [left, left],
    )
  })

  test('leaves nothing where the next generation holds the same socket', async () => {
    const { sockets } = await two(['https'])
    await sockets.take('https', 1, 'w9', placeOf('https'))
    sockets.died('w2')
    assert.deepEqual(sockets.lend(['w1', 'w9']), [])
  })
})

test('closing all also closes a socket that was being opened', async () => {
  const { sockets, open } = held()
  await sockets.take('https', 0, 'w1', placeOf('https'))
  const late = sockets.take('http', 0, 'w1', placeOf('http'))
  sockets.close()
  await assert.rejects(late, { code: 'ECANCELED' })
  assert.equal(open().length, 0)
})

describe('two generations of workers', () => {
  const elsewhere = { host: '127.0.0.2', port: 20001 }

  test('share sockets until the first retires; those of removed slots are lent to the remaining workers', async () => {
    const { sockets, open } = held()
    for (const [slot, id] of ['w1', 'w2'].entries()) await sockets.take('https', slot, id, placeOf('https'))
    for (const [slot, id] of ['w1', 'w2'].entries()) await sockets.take(port, slot, id, placeOf(port))
    for (const name of ['https', port] as const) await sockets.take(name, 0, 'w3', placeOf(name))
    assert.ok(sockets.isServed('https', 0, 'w3'))
    assert.equal(open().length, 4)
    sockets.retire(['w1', 'w2'])
    assert.equal(open().length, 4)
    assert.deepEqual(shown(sockets.lend(['w3'])), ['https of 1: w3', 'tcp 20001 of 1: w3'])
    for (const id of ['w1', 'w2']) sockets.giveUp(port, id)
    assert.equal(open().length, 4)
    sockets.giveUp(port, 'w3')
    assert.equal(open().length, 2)
    const [first, second] = open()
    assert.equal(await sockets.take('https', 1, 'w5', placeOf('https')), second)
    await sockets.take('https', 2, 'w6', placeOf('https'))
    assert.deepEqual(shown(sockets.settle(1)), ['https of 1: w3'])
    assert.equal(open().length, 3)
    assert.equal(open()[0], first)
  })

  test('may listen at different places, and the former place is closed when nobody needs it any more', async () => {
    const { sockets, open } = held()
    const before = await sockets.take(port, 0, 'w1', placeOf(port))
    const after = await sockets.take(port, 0, 'w2', elsewhere)
    assert.notEqual(before, after)
    assert.ok(!sockets.isServed(port, 0, 'w2'))
    assert.equal(await sockets.take(port, 0, 'w3', placeOf(port)), before)
    sockets.retire(['w1', 'w3'])
    assert.deepEqual(open(), [after])
    sockets.giveUp(port, 'w1')
    assert.deepEqual(open(), [after])
  })
})
