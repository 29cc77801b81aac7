/** iperf3 as an upstream. */
import { LOOPBACK } from '../stage/ports.ts'
import type { Program } from '../stage/programs.ts'
import type { Stage } from '../stage/stage.ts'

/** A server for one test: after a broken test a server refuses the next, so each test gets its own. */
export async function startIperf(stage: Stage, { iperf3, port }: { iperf3: string; port: number }): Promise<Program> {
  const program = stage.programs.start(iperf3, ['-s', '-1', '-B', LOOPBACK, '-p', String(port), '--forceflush'])
  await program.says(/Server listening/)
  return program
}
