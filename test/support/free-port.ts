/**
 * Ports that no other test is given, however many processes run tests at the same time.
 *
 * A port is looked for, closed and opened again by a server later, so looking is not enough. A test process claims ports by
 * holding UDP sockets of the same numbers, which nobody else uses: the system gives each to one process, and takes it back
 * when that process ends, in whatever way.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'

export interface PortRange {
  readonly from: number
  readonly to: number
}

/** The TCP ports of a platform that `startPlatform` starts: the default ones without those of `freeTcpPort`. */
export const SHARED_TCP_PORTS: PortRange = { from: 20_000, to: 20_899 }

/** Of the default range of a server, those that tests choose. */
const CHOSEN_TCP_PORTS: PortRange = { from: 20_900, to: 20_999 }

/** Where ports to keep are, best first. Nothing else in our tests opens a port of a fixed number there. */
const KEPT_PORTS = [
  { from: 10_000, to: 19_999 },
  { from: 22_000, to: 31_999 },
  { from: 2_000, to: 9_999 },
] as const

/** How many ports one claim covers. */
const BLOCK = 100

/** A free port in the default TCP range of a server that is not told which range to use. */
export async function freeTcpPort(): Promise<number> {
  for (const port of inRandomOrder(CHOSEN_TCP_PORTS, 1)) if ((await claim(port)) && (await isFree(port))) return port
  throw new Error('no TCP port is left for this test')
}

/** A port for a server that is stopped and started again at the same address, or at which nobody is to listen. */
export async function portToKeep(): Promise<number> {
  const [port] = await portsToKeep(1)
  return port
}

/** Consecutive free ports, at most a hundred. */
export async function portsToKeep(count: number): Promise<[number, ...number[]]> {
  for (;;) {
    if (unused.length < count) unused = await claimBlock()
    const [first = 0, ...others] = unused.splice(0, count)
    const free = await Promise.all([first, ...others].map(isFree))
    if (free.every(Boolean)) return [first, ...others]
  }
}

export interface TcpRange extends PortRange {
  readonly ports: readonly number[]
  readonly flags: { readonly 'tcp-ports': string }
}

/** A TCP range for one platform alone, where neither tests nor servers of other processes choose ports. */
export async function tcpRange(count: number): Promise<TcpRange> {
  const ports = await portsToKeep(count)
  const [from] = ports
  const to = from + count - 1
  return { from, to, ports, flags: { 'tcp-ports': `${from}-${to}` } }
}

// What this process has claimed and not given away.
let unused: number[] = []

async function claimBlock(): Promise<number[]> {
  for (const first of inRandomOrder(keptPorts(), BLOCK)) {
    if (await claim(first)) return Array.from({ length: BLOCK }, (_, i) => first + i)
  }
  throw new Error('all ports for tests are claimed')
}

/** Outside of the ports that the system chooses by itself, which any process may be given at any time. */
function keptPorts(): PortRange {
  const system = systemRange()
  const parts = KEPT_PORTS.flatMap(({ from, to }) => [
    { from, to: Math.min(to, system.from - 1) },
    { from: Math.max(from, system.to + 1), to },
  ])
  // A system may choose from everywhere; then one range is as good as another.
  return parts.find(({ from, to }) => to - from + 1 >= 10 * BLOCK) ?? KEPT_PORTS[0]
}

/** Linux says which; other systems take the range of IANA. */
function systemRange(): PortRange {
  try {
    const [from = 0, to = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number)
    return { from, to }
  } catch {
    return { from: 49_152, to: 65_535 }
  }
}

function inRandomOrder({ from, to }: PortRange, step: number): number[] {
  const numbers: number[] = []
  for (let number = from; number + step - 1 <= to; number += step)
    numbers.splice(randomInt(numbers.length + 1), 0, number)
  return numbers
}

/** Whether it is ours now, until this process ends. */
async function claim(port: number): Promise<boolean> {
  const socket = createSocket('udp4')
  try {
    socket.bind({ port, address: '127.0.0.1', exclusive: true })
    await once(socket, 'listening')
    socket.unref()
    return true
  } catch {
    socket.close()
    return false
  }
}

/** Whether nobody listens on it on this machine's loopback now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
