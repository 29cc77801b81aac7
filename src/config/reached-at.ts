/** What this machine is called, and by which address others reach it, when no setting says so. */
import { hostname, networkInterfaces } from 'node:os'
import type { Listen } from './parse.ts'

export type Interfaces = ReturnType<typeof networkInterfaces>

/** Those at which every address of the machine is listened on. */
const wildcards: readonly string[] = ['0.0.0.0', '::']

/** As long as a name in the DNS may be. */
const MAX_NAME_CHARS = 63

/** Where others reach what listens here: at the address itself, or at `machine` where that is every address. */
export function reachedAt({ host, port }: Listen, machine?: string): Listen {
  return { host: wildcards.includes(host) ? (machine ?? machineAddress()) : host, port }
}

/** The first address that other machines may know: IPv4, else IPv6, else loopback. */
export function machineAddress(interfaces: Interfaces = networkInterfaces()): string {
  const all = Object.values(interfaces).flatMap((each = []) => each.filter(({ internal }) => !internal))
  const ipv4 = all.find(({ family }) => family === 'IPv4')
  // Addresses of one link mean nothing without the name of the interface, which differs from machine to machine.
  const ipv6 = all.find(({ family, address }) => family === 'IPv6' && !/^fe[89ab]/i.test(address))
  return (ipv4 ?? ipv6)?.address ?? '127.0.0.1'
}

/** The name of the host as the name of a node: a system allows more characters, and longer names. */
export function hostNodeName(name = hostname()): string {
  return name.replaceAll(/[^A-Za-z0-9._-]/g, '-').slice(0, MAX_NAME_CHARS) || 'node'
}
