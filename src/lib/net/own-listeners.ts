/** Whether an address and a port are of a listener of this process. */
import { networkInterfaces } from 'node:os'

/** Interfaces come and go, so they are looked at each time. */
export function ownListeners(isOurPort: (port: number) => boolean): (address: string, port: number) => boolean {
  return (address, port) =>
    isOurPort(port) &&
    Object.values(networkInterfaces()).some((addresses) => addresses?.some((own) => own.address === address))
}
