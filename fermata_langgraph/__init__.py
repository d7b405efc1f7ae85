"""LangGraph on Fermata's checkpoint store: `fermata_langgraph.saver.FermataSaver`. Only `saver` needs LangGraph."""
