/** The name of this machine, and the address at which others reach it, when no setting gives them. */
import { hostname, networkInterfaces } from 'node:os'
import type { Listen } from './parse-value.ts'

export type Interfaces = ReturnType<typeof networkInterfaces>

/** Addresses that stand for every address of the machine. */
const wildcards: readonly string[] = ['0.0.0.0', '::']

/** As long as a name in the DNS may be. */
const MAX_NAME_CHARS = 63

/** Where others reach a listener: at its own address, or at `machine` if it listens on every address. */
export function reachedAt({ host, port }: Listen, machine?: string): Listen {
  return { host: wildcards.includes(host) ? (machine ?? machineAddress()) : host, port }
}

/** The first address that other machines may know: IPv4, else IPv6, else loopback. */
export function machineAddress(interfaces: Interfaces = networkInterfaces()): string {
  const all = Object.values(interfaces).flatMap((each = []) => each.filter(({ internal }) => !internal))
  const ipv4 = all.find(({ family }) => family === 'IPv4')
  // A link-local address is useless without the name of the interface, which differs from machine to machine.
  const ipv6 = all.find(({ family, address }) => family === 'IPv6' && !/^fe[89ab]/i.test(address))
  return (ipv4 ?? ipv6)?.address ?? '127.0.0.1'
}

/** The name of the host, reduced to what the name of a node may be: systems allow more characters and longer names. */
export function hostNodeName(name = hostname()): string {
  return name.replaceAll(/[^A-Za-z0-9._-]/g, '-').slice(0, MAX_NAME_CHARS) || 'node'
}
