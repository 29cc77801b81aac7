/**
 * Ports that no other test gets, however many processes run tests at the same time.
 *
 * A port is found free, closed, and opened again by a server later, so finding it is not enough. A test process claims
 * ports by holding UDP sockets with the same numbers, which nothing else uses: the system gives each to one process,
 * and takes it back when that process ends, in whatever way.
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

/** The part of the default range of a server from which tests choose. */
const CHOSEN_TCP_PORTS: PortRange = { from: 20_900, to: 20_999 }

/** Ranges of ports to keep, best first. Nothing else in our tests opens a port with a fixed number there. */
const KEPT_PORTS = [
  { from: 10_000, to: 19_999 },
  { from: 22_000, to: 31_999 },
  { from: 2_000, to: 9_999 },
] as const

/** How many ports one claim covers. */
const BLOCK = 100

/** A free port in the default TCP range of a server, for servers without a range of their own. */
export async function freeTcpPort(): Promise<number> {
  for (const port of inRandomOrder(CHOSEN_TCP_PORTS, 1)) if ((await claim(port)) && (await isFree(port))) return port
  throw new Error('no free TCP port for this test')
}

/** A port for a server that is stopped and started again at the same address, or on which nothing is to listen. */
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

/** A TCP range for one platform only, where neither tests nor servers of other processes choose ports. */
export async function tcpRange(count: number): Promise<TcpRange> {
  const ports = await portsToKeep(count)
  const [from] = ports
  const to = from + count - 1
  return { from, to, ports, flags: { 'tcp-ports': `${from}-${to}` } }
}

// The claimed ports of this process that are still unused.
let unused: number[] = []

async function claimBlock(): Promise<number[]> {
  for (const first of inRandomOrder(keptPorts(), BLOCK)) {
    if (await claim(first)) return Array.from({ length: BLOCK }, (_, i) => first + i)
  }
  throw new Error('all ports for tests are claimed')
}

/** Outside the range from which the system chooses, since it may give those to any process at any time. */
function keptPorts(): PortRange {
  const system = systemRange()
  const parts = KEPT_PORTS.flatMap(({ from, to }) => [
    { from, to: Math.min(to, system.from - 1) },
    { from: Math.max(from, system.to + 1), to },
  ])
  // A system may choose from everywhere; then any range is as good.
  return parts.find(({ from, to }) => to - from + 1 >= 10 * BLOCK) ?? KEPT_PORTS[0]
}

/** Linux tells its range; for other systems, the range of IANA. */
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

/** Claims a port until this process ends; resolves with whether that worked. */
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

/** Whether nothing listens on a port of this machine's loopback now. */
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
