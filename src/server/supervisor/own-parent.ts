/** The channel of this process to the supervisor that started it. */
import type { ChildParts } from './supervised.ts'

/** Undefined without a supervisor. From here on this process lives as long as the channel, and only the supervisor ends it. */
export function ownParent(): Pick<ChildParts, 'parent' | 'exit' | 'onExit'> | undefined {
  const { channel } = process
  if (!process.send || !channel) return undefined
  // `followLauncher` has unreferenced the channel.
  channel.ref()
  process.once('disconnect', () => process.exit(1))
  // A terminal and systemd send their signals to every process; only the supervisor acts on them.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
  return {
    parent: {
      on: (event, heard) => process.on(event, (message, handle) => heard(message as never, handle)), // it is ours
      send: (message, sent) => void process.send?.(message, undefined, undefined, sent),
      isConnected: () => process.connected,
    },
    exit: (code) => process.exit(code),
    onExit: (run) => void process.on('exit', run),
  }
}
