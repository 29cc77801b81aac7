/** Opens the inspector of a running agent, and shows its address. */

import type { InspectServer } from '../../agent/inspect/inspect-server.ts'
import type { InspectAddress } from '../../agent/inspect/listen-address.ts'
import type { LocalParts } from '../../agent/inspect/local-request.ts'
import { Failure } from '../command-failure.ts'
import type { Display } from './display.ts'

interface InspectJob extends LocalParts {
  readonly address: InspectAddress
  readonly display: Pick<Display, 'inspecting'>
}

/** Rejects with a `Failure` if an address that the user chose cannot be used; without the default one the agent goes on. */
export async function openInspector({ display, ...options }: InspectJob): Promise<InspectServer | undefined> {
  const { startInspectServer } = await import('../../agent/inspect/inspect-server.ts')
  const { host, port, isDefault } = options.address
  try {
    const server = await startInspectServer(options)
    display.inspecting({ url: server.url })
    return server
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (!isDefault) throw new Failure(`the inspector cannot listen at ${host}:${port}: ${reason}`, { cause: error })
    display.inspecting({ reason })
    return undefined
  }
}
