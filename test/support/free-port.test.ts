/** Processes that look for ports at the same time are never given the same one. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { freeTcpPort, portsToKeep, portToKeep, tcpRange } from './free-port.ts'

const PROCESSES = 3

/** Takes ports of each kind, prints them, and holds them until it is killed. */
const script = `
  import { freeTcpPort, portsToKeep } from ${JSON.stringify(new URL('free-port.ts', import.meta.url).href)}
  const taken = await Promise.all([...Array.from({ length: 20 }, () => portsToKeep(12)), freeTcpPort(), freeTcpPort()])
  console.log(JSON.stringify(taken.flat()))
  setInterval(() => {}, 60_000)`

async function taken(child: ChildProcess): Promise<number[]> {
  assert.ok(child.stdout)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  return JSON.parse(line)
}

test('each port is given to one process', async (t) => {
  const children = Array.from({ length: PROCESSES }, () =>
    spawn(process.execPath, ['--input-type=module', '--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] }),
  )
  t.after(() => children.map((child) => child.kill('SIGKILL')))
  const own = [await portToKeep(), await portToKeep(), await freeTcpPort(), ...(await portsToKeep(50))]
  const all = [...own, ...(await Promise.all(children.map(taken))).flat()]
  assert.equal(all.length, own.length + PROCESSES * 242)
  assert.equal(new Set(all).size, all.length)
})

test('the ports of a range follow each other, as its flag says', async () => {
  const { from, to, ports, flags } = await tcpRange(7)
  assert.deepEqual(ports, [from, from + 1, from + 2, from + 3, from + 4, from + 5, to])
  assert.deepEqual(flags, { 'tcp-ports': `${from}-${to}` })
})

test('a hundred ports can be claimed, many times over', async () => {
  const firsts = await Promise.all(Array.from({ length: 5 }, async () => (await portsToKeep(100))[0]))
  assert.equal(new Set(firsts).size, 5)
})
