/** Starts the dashboard in the browser. */
import { render } from 'preact'
import { App } from './app.tsx'
import { PageContext, PageState } from './page-state.ts'

const root = document.getElementById('page')
if (!root) throw new Error('the document has no #page element')
render(
  <PageContext.Provider value={new PageState(window)}>
    <App />
  </PageContext.Provider>,
  root,
)
