/** What the threads of the control plane do, by kind of work. */
import type { HeavyWork } from '../../control-plane/records/worker-tasks.ts'
import type { SshKeyChoice } from '../../lib/ssh-keys/ssh-key-pair.ts'
import { serveThread } from '../../lib/threads/serve-thread.ts'
import type { ExplainWork } from '../../model/explanation.ts'

// The threads have nothing of the server: no store, no listeners, no keys. Each kind has one sender, which sends work of
// this form only.
serveThread({
  document: async () => {
    const { doHeavyWork, heavyResult } = await import('../../control-plane/records/worker-tasks.ts')
    return (work) => heavyResult(() => doHeavyWork(work as HeavyWork))
  },
  key: async () => {
    const { makeSshKeyPair } = await import('../../lib/ssh-keys/ssh-key-pair.ts')
    return (choice) => ({ result: makeSshKeyPair(choice as SshKeyChoice) })
  },
  explain: async () => {
    const { heavyResult } = await import('../../control-plane/records/worker-tasks.ts')
    const { explain } = await import('../../data-plane/dry-run/explain.ts')
    return (work) => heavyResult(async () => ({ value: await explain(work as ExplainWork) }))
  },
})
