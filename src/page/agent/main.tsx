/** Starts the agent's page in the browser. */
import { render } from 'preact'
import { PageContext, PageState } from '../page-state.ts'
import { AgentApp } from './agent-app.tsx'

const root = document.getElementById('page')
if (!root) throw new Error('the document has no #page element')
render(
  <PageContext.Provider value={new PageState(window, { who: 'agent' })}>
    <AgentApp />
  </PageContext.Provider>,
  root,
)
