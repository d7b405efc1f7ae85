"""Where passwords are set."""

from django.urls import path

from runs.passwords import views

urlpatterns = [
    path("password/", views.own_password, name="password"),
    path("password/new/", views.new_password, name="password-new"),
    path("password/<str:text>/", views.password_by_link, name="password-by-link"),
]
