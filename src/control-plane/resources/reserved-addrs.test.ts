import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reservedAddrs } from './reserved-addrs.ts'

const fields = { description: '', metadata: '', region: 'local' }

/** Chooses a port of this range, of which only those in `free` are free. */
function choose(range: { from: number; to: number }, free: readonly number[]) {
  assert.ok(reservedAddrs.choose)
  const around = { tcpPorts: range, publicHttpsPort: 443, domain: 'example.com', region: 'local' }
  return reservedAddrs.choose(fields, around, async (_scope, key) => free.includes(Number(key)))
}

test('the last free port of the default range is always found', async () => {
  const range = { from: 20_000, to: 20_999 }
  for (const port of [20_000, 20_500, 20_999]) {
    assert.deepEqual(await choose(range, [port]), { ...fields, port, addr: `tcp.example.com:${port}` })
  }
})

test('the error says that all ports are taken only when they are', async () => {
  await assert.rejects(choose({ from: 20_000, to: 20_999 }, []), {
    code: 'NO_FREE_PORT',
    message: /^all TCP ports between 20000 and 20999 are taken; delete a reserved address/,
  })
  await assert.rejects(choose({ from: 20_000, to: 59_999 }, []), {
    code: 'NO_FREE_PORT',
    message:
      /^nearly all TCP ports between 20000 and 59999 are taken: 1000 of the 40000 were tried at random, and none is free; delete/,
  })
})
