/** A worker: a data plane that gets its configuration from the control process and its sockets from the supervisor. */

import { packageVersion } from '../../lib/files/package-file.ts'
import { IdSource } from '../../lib/ids.ts'
import { ControlConnection } from '../../link/planes/control-connection.ts'
import { ControlLink } from '../../link/planes/control-link.ts'
import type { Settings } from '../config/read-settings.ts'
import type { StartedWorker, WorkerGiven } from '../supervisor/worker-child.ts'
import { openDataPlane } from './open-data-plane.ts'

/** The version of the loaded code. */
const version = packageVersion()

/** Resolves once visitors are let in. */
export async function startWorker(settings: Settings, given: WorkerGiven): Promise<StartedWorker> {
  const { log, descriptors, id, slots, nodeId, folder, listeners, tcpPorts, handedPorts, ticketSecret } = given
  const now = Date.now
  const control = new ControlLink({ log })
  const connection = new ControlConnection(control, given.controlPath)
  const plane = await openDataPlane({
    ...{ settings, listeners, nodeId, folder, ticketSecret, control, now, log, descriptors, version },
    ids: new IdSource({ now }),
    planeId: id,
    planeCount: slots,
    tcpPorts: { handed: handedPorts, open: (port) => tcpPorts.open(port), close: (port) => tcpPorts.close(port) },
  })
  await plane.letVisitorsIn()
  return {
    addresses: plane.addresses,
    use: (next) => plane.use(next),
    controlAt: (path) => connection.moveTo(path),
    drain: () => plane.close(),
    async stop() {
      await plane.close()
      connection.close()
    },
  }
}
