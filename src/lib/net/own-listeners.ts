/** Checks whether an address and port belong to a listener of this process. */
import { networkInterfaces } from 'node:os'

interface OwnPorts {
  readonly ports: readonly number[]
  /** Ports that may be opened at any time, both ends included. */
  readonly range: { readonly from: number; readonly to: number }
}

/** Interfaces come and go, so `addresses` is called each time, but only for a port of ours. */
export function ownListeners(
  { ports, range }: OwnPorts,
  addresses: () => readonly string[] = ownAddresses,
): (address: string, port: number) => boolean {
  const single = new Set(ports)
  const isOurPort = (port: number): boolean => single.has(port) || (port >= range.from && port <= range.to)
  return (address, port) => isOurPort(port) && addresses().includes(address)
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? [])
}
