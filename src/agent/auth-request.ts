/** The message with which an agent authenticates and describes itself. */
import { Secret } from '../lib/secrets/secret.ts'
import { DEFAULT_INTERVAL_MS, DEFAULT_TOLERANCE_MS } from '../link/wire/heartbeat.ts'
import type { AuthRequest } from '../link/wire/messages/auth.ts'
import { GROWN_WINDOW_BYTES } from '../link/wire/wire-bounds.ts'
import type { Commands } from './agent-commands.ts'

export interface Introduction extends Pick<AuthRequest, 'authtoken' | 'version'> {
  readonly clientType?: string
  readonly metadata?: string
  readonly heartbeatIntervalMs?: number | undefined
  readonly heartbeatToleranceMs?: number | undefined
}

interface Resumption extends Pick<AuthRequest, 'clientId' | 'cookie' | 'isMoving' | 'notAt'> {
  readonly commands: Commands
  /** The number of a further connection, and the data planes that have one already. */
  readonly leg?: { readonly number: number; readonly heldPlanes: readonly string[] } | undefined
  /** The connection is a standby, which only waits to become the session. */
  readonly isStandby?: boolean
}

export function authRequest(
  {
    authtoken,
    version,
    clientType = 'postern-agent',
    metadata = '',
    heartbeatIntervalMs = DEFAULT_INTERVAL_MS,
    heartbeatToleranceMs = DEFAULT_TOLERANCE_MS,
  }: Introduction,
  { clientId, cookie, commands: { restart, stop, update }, isMoving, notAt, leg, isStandby = false }: Resumption,
): AuthRequest {
  return {
    versions: ['3', '2'],
    clientId: isStandby ? '' : clientId,
    authtoken,
    cookie: isStandby ? new Secret('') : cookie,
    // Go's names for systems and processors, which ngrok's agents use.
    os: process.platform === 'win32' ? 'windows' : process.platform,
    arch: process.arch === 'x64' ? 'amd64' : process.arch,
    version,
    clientType,
    userAgent: `postern-agent/${version}`,
    hostname: '',
    metadata,
    heartbeatIntervalMs,
    heartbeatToleranceMs,
    restartUnsupported: restart.unsupported,
    stopUnsupported: stop.unsupported,
    updateUnsupported: update.unsupported,
    leg: leg?.number ?? 0,
    windowBytes: GROWN_WINDOW_BYTES,
    canMove: true,
    knowsNodes: true,
    isMoving,
    notAt,
    heldPlanes: leg?.heldPlanes,
    standbyOf: isStandby ? { clientId, cookie } : undefined,
  }
}
