/** What the threads of a data plane do, by kind of work. */
import { serveThread } from '../../lib/threads/serve-thread.ts'
import type { EdgeTask } from '../../modules/edge-worker-tasks.ts'
import type { SamlWork } from '../../modules/saml/saml-documents.ts'

// Each kind has one sender, which sends work of this form only.
serveThread({
  edge: async () => {
    const { doEdgeTask } = await import('../../modules/edge-worker-tasks.ts')
    return (task) => doEdgeTask(task as EdgeTask)
  },
  saml: async () => {
    const { doSamlWork } = await import('../../modules/saml/saml-documents.ts')
    return async (work) => ({ result: await doSamlWork(work as SamlWork) })
  },
})
