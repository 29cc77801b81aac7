/** Checks whether an address and port belong to a listener of this server, and who that is for. */
import { networkInterfaces } from 'node:os'
import { ipBytes, ipText } from './ip-bytes.ts'
import { isLoopbackAddress } from './public-address.ts'

/** `control`: for the API, metrics, agents, SSH clients and other nodes. */
export type ListenerUse = 'control' | 'visitors'

interface OwnPorts {
  readonly control: readonly number[]
  readonly visitors: readonly number[]
  /** Ports that may be opened for visitors at any time, both ends included. */
  readonly range: { readonly from: number; readonly to: number }
}

/** Interfaces come and go, so `addresses` is called each time, but only for a port of ours. */
export function ownListeners(
  { control, visitors, range }: OwnPorts,
  addresses: () => readonly string[] = ownAddresses,
): (address: string, port: number) => ListenerUse | undefined {
  const uses = new Map<number, ListenerUse>()
  for (const port of visitors) uses.set(port, 'visitors')
  for (const port of control) uses.set(port, 'control')
  return (address, port) => {
    const use = uses.get(port) ?? (port >= range.from && port <= range.to ? 'visitors' : undefined)
    return use && leadsHere(address, addresses) ? use : undefined
  }
}

function leadsHere(address: string, addresses: () => readonly string[]): boolean {
  const bytes = ipBytes(address)
  if (!bytes) return false
  // Whoever connects to the unspecified address, 0.0.0.0 or ::, reaches this machine.
  const plain = ipText(bytes)
  return isLoopbackAddress(plain) || bytes.every((byte) => byte === 0) || addresses().includes(plain)
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? [])
}
